// Variables.cpp: what a loop does to local variables of the source, which a directive before it has to name.
#include "Causes.h"
#include "Exits.h"
#include "Loops.h"

#include "Compat.h"
#include "Names.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IntrinsicInst.h"

#include <set>
#include <tuple>

using namespace llvm;

namespace tracekit {

const DILocalVariable *carriedVariable(PHINode &Phi) {
  // Where a header begins stand the variables that it carries. What is assigned from them stands further on.
  SmallPtrSet<const DILocalVariable *, 2> Found;
  for (Instruction &I : *Phi.getParent()) {
    if (isa<PHINode>(I))
      continue;
    forEachAssignment(I, [&](const DILocalVariable *V, const DILocation *, Value *Assigned) {
      if (Assigned == &Phi)
        Found.insert(V);
    });
    if (!I.isDebugOrPseudoInst())
      break;
  }
  if (Found.empty())
    for (const DILocalVariable *V : variablesOf(&Phi))
      Found.insert(V);
  if (Found.empty() && Phi.getType()->isIntegerTy(1)) // a truth value, which is a byte in the source
    for (User *U : Phi.users())
      if (isa<ZExtInst>(U))
        for (const DILocalVariable *V : variablesOf(U))
          Found.insert(V);
  return Found.size() == 1 ? *Found.begin() : nullptr;
}

namespace {

/// Looks at one loop whose place in the source is known.
class LoopVariables {
public:
  LoopVariables(const Loop &L, const DILocation *Start, const FunctionShape &In) : L(L), Start(Start) {
    for (PHINode &Phi : L.getHeader()->phis()) {
      uint32_t Kind = classifyPhi(Phi, L, In).first;
      if (Kind != TK_PHI_LAST_VALUE)
        (Kind == TK_PHI_INDUCTION ? Inductions : Carried).insert(&Phi);
    }
  }

  /// Finds the variables assigned inside, and how often.
  void collect() {
    for (BasicBlock *BB : L.blocks())
      for (Instruction &I : *BB)
        forEachAssignment(I, [&](const DILocalVariable *V, const DILocation *At, Value *) {
          if (isOwn(V, At))
            Assignments[V] += 1;
        });
    for (PHINode *Phi : Carried)
      Assignments.erase(carriedVariable(*Phi));
  }

  void write(Row LoopRow, Unit &U, SourceMap &Sources) const {
    for (const auto &[V, Count] : Assignments) {
      if (isDeclaredInside(V))
        continue;
      uint32_t Flags = isUsedAfter(V) ? TK_VARIABLE_USED_AFTER : 0;
      if (isInduction(V))
        Flags |= TK_VARIABLE_INDUCTION;
      Row Declaration = Sources.declaration(V->getFile(), V->getLine(), V->getScope()->getSubprogram());
      U.Variables.push_back({LoopRow, U.string(V->getName()), Flags, Declaration});
    }
  }

  /// Clang opens a lexical block where a `for` stands, and at no other loop.
  bool isForStatement() const {
    for (const BasicBlock *BB : L.blocks())
      for (const Instruction &I : *BB)
        if (const DILocation *At = I.getDebugLoc().get(); At && At->getInlinedAt() == Start->getInlinedAt())
          for (const DIScope *S = At->getScope(); isa_and_nonnull<DILexicalBlockBase>(S); S = S->getScope())
            if (beginsAt(S, std::equal_to<>()))
              return true;
    return false;
  }

  /// Whether an induction is assigned by more than the one step at the end: at its phi, and there.
  bool isCountedInBody() const {
    return any_of(Inductions, [&](PHINode *Phi) {
      auto Known = Assignments.find(carriedVariable(*Phi));
      return Known != Assignments.end() && Known->second > 2;
    });
  }

  /// Whether a value that belongs to no variable, nor to what the loop carries, is used outside. Where the variables of
  /// the source are known (`InSource`, else null), they say what is to be known of a global one that the optimiser
  /// stores behind the loop only, and what the code outside could load again is none: the source does.
  bool leavesValues(const SourceLoop *InSource) const {
    const Blocks Ending = endingBlocks(L); // what a failed check prints is no value left behind
    for (BasicBlock *BB : L.blocks())
      for (Instruction &I : *BB)
        if (isUsedOutside(I, Ending) && !isCarried(I) && !isOfVariable(I) &&
            !(InSource && (isLeftInGlobal(I, *InSource) || isLoadedAgain(I) || isLeftCounter(I))))
          return true;
    return false;
  }

private:
  /// Whether a value is that of a DO construct's counter, which flang stores behind it.
  bool isLeftCounter(const Instruction &I) const {
    return isFortran(*Start) && all_of(I.users(), [&](const User *By) {
             auto *Store = dyn_cast<StoreInst>(By);
             auto *To = Store ? dyn_cast<AllocaInst>(Store->getPointerOperand()) : nullptr;
             return L.contains(cast<Instruction>(By)) ||
                    (To && Store->getValueOperand() == &I && variableAt(const_cast<AllocaInst *>(To)));
           });
  }

  bool isOwn(const DILocalVariable *V, const DILocation *At) const {
    return At && At->getInlinedAt() == Start->getInlinedAt() &&
           V->getScope()->getSubprogram() == Start->getScope()->getSubprogram();
  }

  template <typename Compare> bool beginsAt(const DIScope *S, Compare Is) const {
    auto *Block = dyn_cast<DILexicalBlock>(S);
    return Block && Block->getFile() == Start->getFile() &&
           Is(std::pair(Block->getLine(), Block->getColumn()), std::pair(Start->getLine(), Start->getColumn()));
  }

  bool isDeclaredInside(const DILocalVariable *V) const {
    for (const DIScope *S = V->getScope(); isa_and_nonnull<DILexicalBlockBase>(S); S = S->getScope())
      if (beginsAt(S, std::greater_equal<>()))
        return true;
    return false;
  }

  /// Whether a value is that of a local variable that the loop's text assigns from outside. One that only variables of
  /// functions have that the loop calls, as a parameter, may be left in any memory.
  bool isOfVariable(Instruction &I) const {
    const DISubprogram *Own = Start->getScope()->getSubprogram();
    return any_of(variablesOf(&I), [&](const DILocalVariable *V) {
      return V->getScope()->getSubprogram() == Own && !isDeclaredInside(V);
    });
  }

  bool isInduction(const DILocalVariable *V) const {
    return any_of(Inductions, [&](PHINode *Phi) { return carriedVariable(*Phi) == V; });
  }

  /// Whether a value follows from loads at addresses that are the same in all iterations, whichever comes last.
  bool isLoadedAgain(Instruction &Root) const {
    SmallPtrSet<Instruction *, 8> Seen;
    SmallVector<Value *, 8> Open = {&Root};
    SmallVector<LoadInst *, 4> Joined;
    while (!Open.empty()) {
      auto *I = dyn_cast<Instruction>(Open.pop_back_val());
      if (!I || !L.contains(I) || !Seen.insert(I).second)
        continue;
      if (auto *Phi = dyn_cast<PHINode>(I)) {
        if (!readsOnePlace(*Phi, L, false, Joined))
          return false;
        continue;
      }
      if (auto *Load = dyn_cast<LoadInst>(I); Load ? !Load->isSimple() : I->mayReadOrWriteMemory() || isa<CallBase>(I))
        return false;
      Open.append(I->op_begin(), I->op_end());
    }
    return true;
  }

  bool isUsedOutside(const Instruction &I, const Blocks &But = {}) const {
    return any_of(I.users(), [&](const User *U) {
      auto *By = cast<Instruction>(U);
      return !L.contains(By) && !But.contains(By->getParent());
    });
  }

  /// Whether the source's variables tell how iterations use a global one, or leave that to the run: it is used through
  /// a pointer, or by parts, of which the run shows nothing where the optimiser keeps the value in a register.
  static bool isToldOf(const GlobalVariable &G, const SourceLoop &InSource) {
    constexpr uint32_t ByRun = TK_VARIABLE_REACHED | TK_VARIABLE_VARYING;
    return any_of(InSource.Variables, [Name = globalName(G)](const SourceVariable &V) {
      return V.Name == Name && V.Flags & TK_VARIABLE_GLOBAL && !(V.Flags & ByRun);
    });
  }

  /// Whether a global variable of which the source tells holds the value behind the loop, and no other memory does.
  bool isLeftInGlobal(Instruction &I, const SourceLoop &InSource) const {
    SmallSetVector<Instruction *, 8> Forms;
    Forms.insert(&I);
    bool Found = false;
    for (size_t K = 0; K < Forms.size(); ++K)
      for (User *U : Forms[K]->users()) {
        auto *By = cast<Instruction>(U);
        if (L.contains(By))
          continue;
        if (isa<PHINode>(By)) {
          Forms.insert(By);
        } else if (auto *Store = dyn_cast<StoreInst>(By); Store && Store->getValueOperand() == Forms[K]) {
          auto *G = dyn_cast<GlobalVariable>(Store->getPointerOperand()->stripInBoundsConstantOffsets());
          if (!G || !isToldOf(*G, InSource))
            return false;
          Found = true;
        }
      }
    return Found;
  }

  bool isCarried(const Instruction &I) const {
    auto *Phi = dyn_cast<PHINode>(&I);
    return (Phi && Carried.contains(const_cast<PHINode *>(Phi))) ||
           any_of(Carried, [&](const PHINode *Of) { return is_contained(Of->incoming_values(), &I); });
  }

  /// Optimised code may compute what a variable ends with without the loop: there it has to be assumed.
  bool isUsedAfter(const DILocalVariable *V) const {
    if (!L.getHeader()->getParent()->hasOptNone())
      return true;
    for (BasicBlock *BB : L.blocks())
      for (Instruction &I : *BB)
        if (is_contained(variablesOf(&I), V) && isUsedOutside(I) && !isAnothers(I, V))
          return true;
    return false;
  }

  /// Whether `I` is the phi of another variable, from which `V` has its value for a while.
  bool isAnothers(Instruction &I, const DILocalVariable *V) const {
    auto *Phi = dyn_cast<PHINode>(&I);
    return Phi && Phi->getParent() == L.getHeader() && carriedVariable(*Phi) && carriedVariable(*Phi) != V;
  }

  const Loop &L;
  const DILocation *Start;
  SmallPtrSet<PHINode *, 4> Inductions, Carried;
  MapVector<const DILocalVariable *, unsigned> Assignments;
};

} // namespace

namespace {

/// Which of the source's stores a loop still has, so that the run shows what they do.
class StoresLeft {
public:
  StoresLeft(const Loop &L, const DILocation &Start) {
    const DISubprogram *Own = Start.getScope()->getSubprogram();
    for (BasicBlock *BB : L.blocks())
      for (Instruction &I : *BB) {
        const DILocation *At = I.getDebugLoc().get();
        if (auto *Call = dyn_cast<CallBase>(&I); Call && Call->getCalledFunction())
          Called.insert(Call->getCalledFunction()->getSubprogram());
        if (At && isa<StoreInst, MemIntrinsic>(I) &&
            (At->getInlinedAt() == Start.getInlinedAt() || At->getScope()->getSubprogram() != Own))
          Places.insert({At->getScope()->getSubprogram(), At->getLine(), At->getColumn()});
      }
  }

  /// Whether one is there, or in a function that the loop calls.
  bool has(const SourceStore &Store) const {
    const DILocation *At = Store.At;
    return any_of(Store.Through, [&](const DISubprogram *By) { return Called.contains(By); }) ||
           Places.count({At->getScope()->getSubprogram(), At->getLine(), At->getColumn()});
  }

private:
  std::set<std::tuple<const DISubprogram *, unsigned, unsigned>> Places;
  SmallPtrSet<const DISubprogram *, 4> Called;
};

} // namespace

/// The variables as the source has them; the flags of the loop's head. Of memory behind pointers, only what the
/// optimiser has moved out of the loop: the run shows the rest.
static uint32_t describeSource(const SourceLoop &InSource, const StoresLeft &Left, Row LoopRow, Unit &U,
                               SourceMap &Sources) {
  for (const SourceVariable &V : InSource.Variables) {
    if (any_of(V.Stores, [&](const SourceStore &Each) { return Left.has(Each); }))
      continue;
    auto *Local = dyn_cast_or_null<DILocalVariable>(V.Declared);
    Row Declaration = TK_NONE;
    if (!V.Stores.empty())
      Declaration = Sources.declaration(V.Stores.front().At->getFile(), V.Stores.front().At->getLine(),
                                        V.Stores.front().At->getScope()->getSubprogram());
    else if (V.Declared)
      Declaration = Sources.declaration(V.Declared->getFile(), V.Declared->getLine(),
                                        Local ? Local->getScope()->getSubprogram() : nullptr);
    if (V.Update)
      U.VariableUpdates.push_back({Row(U.Variables.size()), V.Update->Kind, U.string(V.Update->Operator)});
    U.Variables.push_back({LoopRow, U.string(V.Name), V.Flags, Declaration});
  }
  return (InSource.IsCanonical ? TK_LOOP_FOR_STATEMENT : 0) | (InSource.UsesBinding ? TK_LOOP_BINDING : 0) |
         (InSource.HasPragma ? TK_LOOP_PRAGMA : 0) | (InSource.IsConstexpr ? TK_LOOP_CONSTEXPR : 0) |
         (InSource.UsesThreadLocal ? TK_LOOP_THREAD_LOCAL : 0) | (InSource.IsConcurrent ? TK_LOOP_CONCURRENT : 0) |
         (InSource.HasWordMacro ? TK_LOOP_WORD_IS_MACRO : 0);
}

uint32_t describeVariables(const Loop &L, DebugLoc Start, Row LoopRow, const FunctionShape &In,
                           const SourceLoops *InSource, Unit &U, SourceMap &Sources) {
  if (!Start)
    return 0;
  LoopVariables Found(L, Start.get(), In);
  const SourceLoop *Known = InSource ? InSource->find(Start.get()) : nullptr;
  uint32_t LeavesValues = Found.leavesValues(Known) ? TK_LOOP_LEAVES_VALUES : 0;
  const DISubprogram *Function = Start->getScope()->getSubprogram();
  bool LinesOnly = !Function->getUnit() || Function->getUnit()->getEmissionKind() != DICompileUnit::FullDebug;
  if (InSource)
    return LeavesValues | TK_LOOP_SOURCE | (LinesOnly ? TK_LOOP_LINES_ONLY : 0) |
           (Known ? describeSource(*Known, StoresLeft(L, *Start), LoopRow, U, Sources) : 0);
  Found.collect();
  Found.write(LoopRow, U, Sources);
  return LeavesValues | (Found.isForStatement() && !Found.isCountedInBody() ? TK_LOOP_FOR_STATEMENT : 0);
}

} // namespace tracekit
