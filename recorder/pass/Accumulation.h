// Accumulation.h: values that iterations hand on by one associative operator, through registers or through memory.
#pragma once

#include "Equality.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ScalarEvolution.h"

namespace tracekit {

/// The analyses of one function that tell what its loops carry.
struct FunctionShape {
  const llvm::LoopInfo &LI;
  const llvm::DominatorTree &DT;
  const llvm::PostDominatorTree &PDT;
  llvm::ScalarEvolution &SE;
  mutable PhiSums Sums = {};
};

/// The associative operator that `I` applies, "" if none. `Through` is the operand that is accumulated, which for
/// subtraction must be the left one.
llvm::StringRef associativeOperator(const llvm::Instruction &I, const llvm::Value *Through);

/// Operators that no clause of OpenMP names: the element that has the least or greatest key; a value that each
/// iteration leaves alone or sets to the same. Of memory, which several such updates may set, the value follows (`=1`).
inline constexpr llvm::StringLiteral LeastElement = "argmin", GreatestElement = "argmax", SameValue = "=";

/// What grows out of a header's phi, or of a load, inside its loop (without one: in its function) by one operator, and
/// is used for nothing else:
/// phis, selections, and the operator's results. A minimum or maximum may be chosen by a comparison, as a selection or
/// by branches that do nothing else. What is chosen along with it, the place of the maximum say, are `Positions`.
class Accumulation {
public:
  Accumulation(const llvm::Loop *L, const FunctionShape &In) : L(L), In(&In), Same(L, In.DT) {}

  /// The operator, or "" if something else is done with an accumulated value.
  llvm::StringRef ofPhi(llvm::PHINode &Phi);

  /// The same of a variable in memory that `Load`, in its innermost loop `L` if there is one, reads and `Stores`
  /// update.
  llvm::StringRef ofLoad(llvm::LoadInst &Load);

  /// The address of the variable in memory, if it has one; of a phi, where its first value is loaded, or
  /// stored.
  llvm::Value *address() const { return Home; }

  /// The number that iterations set a variable to, in words; "" if that is none.
  std::string numberSetTo() const;

  /// Whether what a phi has accumulated is stored where its first value was loaded.
  bool isWrittenBack() const;

  /// Where the source combines or compares it, and decides and stores what is taken; null of what has no place.
  llvm::SmallVector<const llvm::DILocation *, 4> places() const;

  llvm::SmallVector<llvm::LoadInst *, 2> Loads;
  llvm::SmallSetVector<llvm::StoreInst *, 2> Stores;         // of accumulated values to the variable
  llvm::SmallSetVector<llvm::BranchInst *, 2> Branches;      // that decide what is taken
  llvm::SmallSetVector<llvm::StoreInst *, 2> PositionStores; // of what is chosen along with it
  llvm::SmallSetVector<llvm::PHINode *, 2> Positions;        // headers' phis of the same

private:
  /// A comparison's outcome, known at some place.
  struct Fact {
    llvm::CmpInst *Compare;
    bool Outcome;
  };
  using Facts = llvm::SmallVector<Fact, 2>;
  using Chain = llvm::SmallSetVector<llvm::Value *, 8>;
  using Pair = std::pair<llvm::Value *, llvm::Value *>; // of a position's chain, and of the extreme's values
  using Pairs = llvm::SmallSetVector<Pair, 8>;

  bool contains(const llvm::Instruction *I) const { return !L || L->contains(I); }
  const llvm::BasicBlock *header() const { return L ? L->getHeader() : nullptr; }
  bool isCompared(const llvm::Value &V) const;
  void findLoadsBehind(llvm::LoadInst &Load);
  void findLoadsAround(llvm::LoadInst &Load);
  bool grow();
  bool take(llvm::Instruction &User, llvm::Value *From);
  bool takeCast(llvm::CastInst &Cast);
  bool isTest(const llvm::Instruction &I) const;
  bool takeStore(llvm::StoreInst &Store);
  bool takeSelect(llvm::SelectInst &Select, llvm::Value *From);
  bool followDecisions();
  bool takeDecision(llvm::Instruction &User, llvm::Value *Decision);
  bool lookAtRegion(llvm::BranchInst &Branch);
  bool lookAtBlock(llvm::BasicBlock &BB);
  bool isIndependent(const llvm::PHINode &Phi, const llvm::SmallPtrSetImpl<llvm::BasicBlock *> &Region) const;

  bool agree(llvm::StringRef Applied);
  bool isWellFormed();
  bool isMerge(const llvm::Value *V) const;
  bool isWellFormedPhi(llvm::PHINode &Phi);
  bool isWellFormedSelect(llvm::SelectInst &Select);
  bool isChosenStore(llvm::StoreInst &Store);
  bool takeNew(llvm::Value *New, const Facts &Known, llvm::ArrayRef<llvm::Value *> Kept);
  bool takeConstant(llvm::Value *New);
  bool castsFit() const;
  bool positionsFit();
  Chain chainOf(llvm::PHINode &Phi) const;
  bool goesWithTheKey(llvm::PHINode &Position, const Chain &Handed) const;
  bool isPair(llvm::Value *Of, llvm::Value *Key, const Chain &Handed, const Pairs &Fitting) const;
  bool choosesAsTheKey(llvm::Instruction &Of, llvm::Value *Key, const Chain &Handed, const Pairs &Fitting) const;
  llvm::StringRef setsTo(const llvm::Constant &C) const;

  Facts factsAt(const llvm::Use &U) const;
  Facts factsIn(const llvm::BasicBlock &BB) const;
  void implied(llvm::Value *Decision, bool Outcome, Facts &Known) const;
  llvm::StringRef direction(const Fact &Known, llvm::Value *New, llvm::ArrayRef<llvm::Value *> Kept) const;
  llvm::Value *withoutCasts(llvm::Value *V) const;
  bool isRoot(const llvm::Value *V) const {
    return V == Root || llvm::isa<llvm::LoadInst>(V) || Twins.contains(llvm::dyn_cast<llvm::PHINode>(V));
  }
  llvm::StringRef grownFrom(llvm::PHINode &Phi, llvm::ArrayRef<llvm::PHINode *> Alike);
  llvm::SmallVector<llvm::Value *, 2> homesOf(llvm::PHINode &Root) const;
  bool isAloneInLoopsAround() const;
  bool isStoredInside(const llvm::Value &Pointer) const;
  bool isHome(llvm::Value *Pointer) const;

  const llvm::Loop *L;
  const FunctionShape *In;
  Equality Same;
  llvm::Instruction *Root = nullptr;
  llvm::SmallSetVector<const llvm::PHINode *, 2> Twins; // of the header: always the same value as `Root`
  llvm::Value *Home = nullptr;                          // where the variable lies in memory, if it does
  llvm::SmallSetVector<llvm::Value *, 8> Values;
  llvm::SmallSetVector<llvm::Instruction *, 8> Steps;
  llvm::SmallSetVector<llvm::CmpInst *, 2> Comparisons;
  llvm::SmallPtrSet<llvm::CmpInst *, 2> Ordering;          // those that say which value is taken
  llvm::SmallSetVector<llvm::Value *, 4> Decisions;        // truth values that follow from comparisons and tests
  llvm::SmallSetVector<llvm::Instruction *, 2> Chosen;     // by the same decisions: phis and selections
  llvm::SmallSetVector<llvm::StoreInst *, 2> ChosenStores; // in blocks that a decision leads to
  llvm::Constant *SetTo = nullptr;                         // the value that iterations set it to
  bool TestsTruth = false, IsTruth = false;                // against 0; narrowed to one bit
  llvm::StringRef Operator;
};

} // namespace tracekit
