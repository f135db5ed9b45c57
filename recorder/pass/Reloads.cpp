// Reloads.cpp: undoes the optimiser's partial redundancy elimination of loads that a loop hands on. Of a bound that
// only one way through an iteration may change (`c < self->n`, and a call), the optimiser loads it again on that way,
// and hands on what it has: that each iteration reads it in memory is no longer to be seen.
#include "Compat.h"
#include "Equality.h"
#include "Loops.h"
#include "Segments.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace tracekit {

/// What needs more pairs of a value and a block counts as something else.
static constexpr unsigned MostEnds = 512;

namespace {

/// Whether a value is what lies at an address, wherever control has come from.
class Content {
public:
  Content(const LoadInst &Load, AAResults &AA) : Load(Load), Place(MemoryLocation::get(&Load)), AA(AA) {}

  bool isAtStartOf(PHINode &Phi) {
    addIncoming(Phi);
    while (!Open.empty())
      if (Seen.size() > MostEnds || !lookAtEnd(Open.pop_back_val()))
        return false;
    return true;
  }

private:
  using Pair = std::pair<const Value *, const BasicBlock *>;

  void add(const Value *V, const BasicBlock *BB) {
    if (Seen.insert({V, BB}).second)
      Open.push_back({V, BB});
  }

  void addIncoming(const PHINode &Phi) {
    for (auto [V, From] : zip(Phi.incoming_values(), Phi.blocks()))
      add(named(V, *From, *Phi.getParent()), From);
  }

  /// The register that an edge is taken for being equal to a constant, which the optimiser has put in its place.
  static const Value *named(const Value *V, const BasicBlock &From, const BasicBlock &To) {
    auto *Branch = dyn_cast<BranchInst>(From.getTerminator());
    auto *Test = Branch && Branch->isConditional() ? dyn_cast<ICmpInst>(Branch->getCondition()) : nullptr;
    if (!isa<Constant>(V) || !Test || !Test->isEquality() || Test->getOperand(1) != V)
      return V;
    unsigned Equal = Test->getPredicate() == CmpInst::ICMP_EQ ? 0 : 1;
    bool IsEqual = Branch->getSuccessor(Equal) == &To && Branch->getSuccessor(1 - Equal) != &To;
    return IsEqual ? Test->getOperand(0) : V;
  }

  /// Goes back from the end of a block to the load, or on to the blocks before it. False if the value may be another.
  bool lookAtEnd(Pair At) {
    auto [V, BB] = At;
    for (const Instruction &I : reverse(*BB)) {
      if (isa<PHINode>(I))
        break;
      if (&I == V)
        return isLoad(I);
      if (stores(I, V))
        return true;
      if (Equality::mayChange(I, Load.getPointerOperand()) && isModSet(AA.getModRefInfo(&I, Place)))
        return false;
    }
    if (auto *Phi = dyn_cast<PHINode>(V); Phi && Phi->getParent() == BB) {
      addIncoming(*Phi);
      return true;
    }
    for (const BasicBlock *Before : predecessors(BB))
      add(V, Before);
    return !pred_empty(BB);
  }

  bool isLoad(const Instruction &I) const {
    auto *Other = dyn_cast<LoadInst>(&I);
    return Other && Other->isSimple() && Other->getType() == Load.getType() &&
           Other->getPointerOperand() == Load.getPointerOperand();
  }

  bool stores(const Instruction &I, const Value *V) const {
    auto *Store = dyn_cast<StoreInst>(&I);
    return Store && Store->isSimple() && Store->getValueOperand() == V &&
           Store->getPointerOperand() == Load.getPointerOperand();
  }

  const LoadInst &Load;
  MemoryLocation Place;
  AAResults &AA;
  DenseSet<Pair> Seen;
  SmallVector<Pair, 16> Open;
};

} // namespace

/// A load inside the loop, from an address that is the same in all iterations, that `Carried` may hand on.
static LoadInst *handedOn(PHINode &Carried, const Loop &L) {
  SmallVector<Value *, 8> Open(Carried.incoming_values());
  SmallPtrSet<Value *, 8> Seen;
  while (!Open.empty()) {
    auto *I = dyn_cast<Instruction>(Open.pop_back_val());
    if (!I || !L.contains(I) || !Seen.insert(I).second)
      continue;
    if (auto *Load = dyn_cast<LoadInst>(I))
      return Load->isSimple() && L.isLoopInvariant(Load->getPointerOperand()) ? Load : nullptr;
    auto *Phi = dyn_cast<PHINode>(I);
    if (!Phi)
      return nullptr;
    Open.append(Phi->value_op_begin(), Phi->value_op_end());
  }
  return nullptr;
}

void loadAgain(const LoopInfo &LI, AAResults &AA) {
  for (Loop *L : LI.getLoopsInPreorder()) {
    DenseMap<std::pair<Value *, Type *>, LoadInst *> Loads;
    BasicBlock *Header = L->getHeader();
    for (PHINode &Carried : make_early_inc_range(Header->phis())) {
      LoadInst *Load = Header->isEHPad() || !variablesOf(&Carried).empty() || carriedVariable(Carried)
                           ? nullptr
                           : handedOn(Carried, *L);
      if (!Load || !Content(*Load, AA).isAtStartOf(Carried))
        continue;
      LoadInst *&Again = Loads[{Load->getPointerOperand(), Load->getType()}];
      if (!Again) {
        Again = IRBuilder<>(Header, Header->getFirstInsertionPt())
                    .CreateAlignedLoad(Load->getType(), Load->getPointerOperand(), Load->getAlign());
        Again->setAAMetadata(Load->getAAMetadata());
        Again->setDebugLoc(Load->getDebugLoc());
      }
      Carried.replaceAllUsesWith(Again);
      Carried.eraseFromParent();
    }
  }
}

} // namespace tracekit
