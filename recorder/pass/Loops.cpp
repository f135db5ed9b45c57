// Loops.cpp: loops, their exits, and the flags that are about leaving them.
#include "Loops.h"

#include "Causes.h"
#include "Compat.h"
#include "Exits.h"
#include "Leaves.h"
#include "LoopStarts.h"
#include "LoopText.h"
#include "Names.h"
#include "SimdLoops.h"
#include "SourceTypes.h"
#include "Unset.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/BinaryFormat/Dwarf.h"

using namespace llvm;

namespace tracekit {

static SmallVector<BasicBlock *, 4> ordinaryExitingBlocks(const Loop &L) {
  SmallVector<BasicBlock *, 4> Exiting;
  for (BasicBlock *BB : L.blocks())
    if (any_of(successors(BB), [&](BasicBlock *Next) { return !L.contains(Next) && isOrdinaryExit(Next); }))
      Exiting.push_back(BB);
  return Exiting;
}

/// Whether `V` depends, through registers, on a load or a call inside the loop.
static bool dependsOnData(Value *V, const Loop &L) {
  SmallPtrSet<Instruction *, 16> Seen;
  SmallVector<Value *, 16> Open = {V};
  while (!Open.empty()) {
    auto *I = dyn_cast_or_null<Instruction>(Open.pop_back_val());
    if (!I || !L.contains(I) || !Seen.insert(I).second)
      continue;
    if (isa<LoadInst, AtomicRMWInst, AtomicCmpXchgInst>(I) || mayReenter(*I) || callsLeaf(*I))
      return true;
    if (auto *Call = dyn_cast<CallBase>(I); Call && Call->mayReadFromMemory())
      return true;
    Open.append(I->op_begin(), I->op_end());
  }
  return false;
}

static uint32_t loopFlags(const Loop &L, ScalarEvolution &SE) {
  uint32_t Flags = 0;
  auto Set = [&](uint32_t Flag, bool Holds) { Flags |= Holds ? Flag : 0; };
  BasicBlock *Header = L.getHeader();
  Set(TK_LOOP_COUNTABLE, L.getExitingBlock() && SE.hasLoopInvariantBackedgeTakenCount(&L));
  Set(TK_LOOP_TESTS_AT_HEADER, L.isLoopExiting(Header) && !L.isLoopLatch(Header));

  SmallVector<BasicBlock *, 4> Exiting = ordinaryExitingBlocks(L);
  // The loop's own test is at its latch (rotated, do-while) or else at its header (while form).
  BasicBlock *OwnTest = nullptr;
  for (BasicBlock *BB : Exiting)
    if (L.isLoopLatch(BB) || (BB == Header && !OwnTest))
      OwnTest = BB;
  for (BasicBlock *BB : Exiting) {
    Set(TK_LOOP_EXITS_EARLY, BB != OwnTest);
    Set(TK_LOOP_EXITS_ON_DATA, dependsOnData(decidedBy(BB->getTerminator()), L));
  }
  return Flags;
}

static void describeExits(const Loop &L, const SegmentedFunction &S, const FunctionRows &Rows, Unit &U,
                          SourceMap &Sources, Causes &Decisions) {
  for (BasicBlock *BB : L.blocks()) {
    SmallPtrSet<BasicBlock *, 4> Seen; // a switch may have several edges to one block
    for (BasicBlock *Next : successors(BB))
      if (!L.contains(Next) && Seen.insert(Next).second) {
        Decisions.ofExit(U.LoopExits.size(), BB, Next);
        U.LoopExits.push_back(
            {lastBlock(S, Rows, BB), firstBlock(S, Rows, Next), Sources.location(BB->getTerminator()->getDebugLoc())});
      }
  }
}

/// Of a variable that lies in several registers, a phi is only a part: a reduction of the variable takes all of them.
static bool isWhole(const DILocalVariable &V) {
  const DIType *T = plainType(V.getType());
  if (auto *Composite = dyn_cast_or_null<DICompositeType>(T))
    return Composite->getTag() == dwarf::DW_TAG_enumeration_type;
  return isa_and_nonnull<DIDerivedType>(T) || isReducible(T); // a pointer is whole, even if OpenMP reduces none
}

/// The variable in which the source accumulates at the places at which `Of` does; "" if it is not one alone.
///
/// The optimiser forgets a variable of one function that is not local (`static double sum`) when it makes it a
/// register.
static StringRef nameByPlace(const Accumulation &Of, const SourceLoop &Source, const DILocation &Start) {
  SmallVector<const DILocation *, 4> Places = Of.places();
  StringRef Found;
  for (const SourceVariable &V : Source.Variables) {
    auto IsOfIt = [&](const DILocation *At) {
      return At && areOneCopy(*At, Start) && any_of(V.Update->Places, [&](const DILocation *Known) {
               return Known && Known->getLine() == At->getLine() && Known->getColumn() == At->getColumn();
             });
    };
    if (!V.Update || Places.empty() || !all_of(Places, IsOfIt))
      continue;
    if (!Found.empty())
      return "";
    Found = V.Name;
  }
  return Found;
}

/// The name of the variable that a phi carries. Of one that is kept in a register inside the loop only, its name.
static StringRef nameOf(PHINode &Phi, const Loop &L, const FunctionShape &In, uint32_t Kind, const SourceLoop *Source,
                        const DebugLoc &Start) {
  const DILocalVariable *V = carriedVariable(Phi);
  if (Kind != TK_PHI_REDUCTION)
    return V ? V->getName() : "";
  if (V)
    return isWhole(*V) ? V->getName() : "";
  Accumulation Of(&L, In);
  bool IsOne = !Of.ofPhi(Phi).empty();
  auto *G = dyn_cast_or_null<GlobalVariable>(Of.address());
  if (G && G->getValueType()->isSingleValueType() && Of.isWrittenBack())
    return globalName(*G);
  return IsOne && Source ? nameByPlace(Of, *Source, *Start) : "";
}

/// What an induction advances by, if that is a constant.
static std::string stepOf(PHINode &Phi, const FunctionShape &In) {
  auto *Evolution = dyn_cast<SCEVAddRecExpr>(In.SE.getSCEV(&Phi));
  auto *Step = Evolution ? dyn_cast<SCEVConstant>(Evolution->getStepRecurrence(In.SE)) : nullptr;
  if (!Step || Step->getAPInt().getBitWidth() > 64)
    return "";
  int64_t By = Step->getAPInt().getSExtValue();
  return (Twine(By < 0 ? "" : "+") + Twine(By) + (Phi.getType()->isPointerTy() ? " bytes" : "")).str();
}

/// Whether a phi counts the iterations of a loop that runs twice at most. The optimiser makes two constants of its
/// counter then, the first iteration's and the second's, and truth values of what is asked of it.
///
/// Another variable of the source that has one constant before the loop and one behind its first iteration looks like
/// that, too, and iterations share it: the phi has to be of no such variable, or the loop to have none.
static bool countsTwoIterations(PHINode &Phi, const Loop &L, const FunctionShape &In, const SourceLoop *Source) {
  auto IsConstant = [](const Value *V) { return isa<ConstantInt, ConstantPointerNull>(V); };
  if (!Source || In.SE.getSmallConstantMaxTripCount(&L) - 1 > 1 || !all_of(Phi.incoming_values(), IsConstant))
    return false;
  const DILocalVariable *V = carriedVariable(Phi);
  return none_of(Source->Variables, [V](const SourceVariable &Each) {
    bool IsShared = (Each.Flags & TK_VARIABLE_READ_FIRST) && !(Each.Flags & TK_VARIABLE_INDUCTION);
    return IsShared && (V ? Each.Declared == V : !Each.Update);
  });
}

static void describePhis(const Loop &L, const SegmentedFunction &S, FunctionRows &Rows, const FunctionShape &In,
                         const SourceLoop *Source, const DebugLoc &Start, Unit &U, SourceMap &Sources,
                         Causes &Advances) {
  for (PHINode *Phi : S.HeaderPhis.lookup(L.getHeader())) {
    auto [Kind, Operator] = classifyPhi(*Phi, L, In);
    if (Kind == TK_PHI_RECURRENCE && countsTwoIterations(*Phi, L, In, Source))
      Kind = TK_PHI_INDUCTION;
    if (Kind == TK_PHI_RECURRENCE && Source && isUnset(*Phi, L, *Source))
      Kind = TK_PHI_LAST_VALUE;
    std::string By = Kind == TK_PHI_INDUCTION    ? stepOf(*Phi, In)
                     : Kind == TK_PHI_RECURRENCE ? conditionalStep(*Phi, L)
                                                 : Operator.str();
    Row PhiRow = Rows.PhiOf[Phi] = U.Phis.size();
    StringRef Name = nameOf(*Phi, L, In, Kind, Source, Start);
    U.Phis.push_back({Kind, U.string(By), U.string(Name), Sources.location(Phi->getDebugLoc())});
    if (Kind == TK_PHI_RECURRENCE)
      Advances.ofRecurrence(PhiRow, *Phi);
  }
}

void describeLoops(const SegmentedFunction &S, FunctionRows &Rows, const FunctionShape &In, const SourceLoops *InSource,
                   Unit &U, SourceMap &Sources) {
  tk_row_functions &Self = U.Functions[Rows.Function];
  Self.first_loop = U.Loops.size();
  LoopStarts Starts(In.LI, InSource);
  for (Loop *L : In.LI.getLoopsInPreorder()) {
    DebugLoc Start = Starts.of(*L);
    tk_row_loops R = {};
    R.function = Rows.Function;
    R.header = firstBlock(S, Rows, L->getHeader());
    R.parent = L->getParentLoop() ? Rows.LoopOf.lookup(L->getParentLoop()) : TK_NONE;
    R.depth = L->getLoopDepth();
    R.location = Sources.location(Start);
    R.end_line = Start ? endOf(*L, *Start).first : 0;
    R.flags = TK_LOOP_CAUSES | simdFlags(*L) | loopFlags(*L, In.SE) |
              describeVariables(*L, Start, U.Loops.size(), In, InSource, U, Sources);
    R.first_phi = U.Phis.size();
    const SourceLoop *Source = InSource && Start ? InSource->find(Start.get()) : nullptr;
    Causes Why(*L, In.LI, In.DT, Rows, Source, U);
    describePhis(*L, S, Rows, In, Source, Start, U, Sources, Why);
    R.phis = U.Phis.size() - R.first_phi;
    R.first_exit = U.LoopExits.size();
    describeExits(*L, S, Rows, U, Sources, Why);
    R.exits = U.LoopExits.size() - R.first_exit;
    Rows.LoopOf[L] = U.Loops.size();
    U.Loops.push_back(R);
  }
  Self.loops = U.Loops.size() - Self.first_loop;
  for (size_t K = 0; K < S.Segments.size(); ++K)
    if (Loop *L = In.LI.getLoopFor(S.Segments[K].Parent))
      U.Blocks[Rows.FirstBlock + K].loop = Rows.LoopOf.lookup(L);
}

} // namespace tracekit
