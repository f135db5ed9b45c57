// ForHead.cpp: see ForHead.h.
#include "ForHead.h"

#include "Compat.h"
#include "Exits.h"
#include "Iterators.h"
#include "PureCalls.h"
#include "SourceTypes.h"
#include "SourceUpdates.h"
#include "Temporaries.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

namespace {

class HeadReader {
public:
  explicit HeadReader(const LoopText &Text) : Text(Text), L(Text.L) {}

  ForHead read() {
    bool IsCanonical = isCanonical();
    bool HasTemporaries = any_of(
        Head, [](const BasicBlock *BB) { return any_of(*BB, [](const Instruction &I) { return isa<StoreInst>(I); }); });
    return {Counter,
            IsCanonical,
            IsReached,
            IsReached && !IsReachedInsideOnly,
            IsReached ? ConstantStep : "",
            IsCanonical && runsAlways(),
            HasTemporaries};
  }

private:
  /// Whether OpenMP accepts the loop. Finds the counter.
  bool isCanonical() {
    findTest();
    auto *Branch = TestBlock ? dyn_cast<BranchInst>(TestBlock->getTerminator()) : nullptr;
    BasicBlock *Latch = L.getLoopLatch();
    std::optional<Comparison> Test;
    if (Branch && Branch->isConditional())
      Test = comparisonOf(Branch->getCondition());
    if (!Test || !Latch || Latch == L.getHeader() || leavesElsewhere())
      return false;
    auto Compared = [&](Value *V) { return Test->IsOfIterators ? iterator(V) : counted(V); };
    Object Left = Compared(Test->Left), Right = Compared(Test->Right);
    auto Steps = [&](Object Variable) { return Variable && isSteppedIn(*Latch, Variable); };
    bool IsLeft = Steps(Left);
    if (IsLeft == Steps(Right))
      return false;
    Counter = IsLeft ? Left : Right;
    return isFixedBound(IsLeft ? Test->Right : Test->Left) && areChoicesFixed() && beginsWithCounterAlone() &&
           declarationOf(Counter) != nullptr && (!Test->IsEquality || (StepsByOne && !mayWrap()));
  }

  /// Finds the block with the loop's test: the header, or where the arms of a conditional expression in the head
  /// (`i < (n < m ? n : m)`) come together.
  void findTest() {
    Head.insert(L.getHeader());
    BasicBlock *Found = nullptr;
    for (size_t K = 0; K < Head.size(); ++K) {
      BasicBlock *BB = Head[K];
      auto *Call = dyn_cast<InvokeInst>(BB->getTerminator());
      bool IsTest = L.isLoopExiting(BB) && !Call;
      auto IsOurs = [this](const Instruction &I) { return isPartOfHead(I); };
      if (IsTest ? Found || !IsOurs(*BB->getTerminator()) : !all_of(*BB, IsOurs))
        return;
      if (IsTest)
        Found = BB;
      else if (Call)
        Head.insert(Call->getNormalDest());
      else
        Head.insert(succ_begin(BB), succ_end(BB));
    }
    TestBlock = Found;
  }

  /// Whether an instruction before the loop's test computes something for it, and is no part of the loop's body.
  bool isPartOfHead(const Instruction &I) const {
    if (I.isDebugOrPseudoInst())
      return true;
    const DILocation *At = I.getDebugLoc().get();
    return isReadOnly(I) && (!At || (!At->getInlinedAt() && isScopeOfFor(At->getScope())));
  }

  /// Whether an instruction changes nothing but a temporary: what the bound calls (`i < rows.size()`) does not, as a
  /// rule.
  static bool isReadOnly(const Instruction &I) {
    if (auto *Store = dyn_cast<StoreInst>(&I))
      return isTemporary(Store->getPointerOperand());
    if (auto *Built = dyn_cast<IntrinsicInst>(&I))
      return Built->isLifetimeStartOrEnd() || !I.mayWriteToMemory();
    auto *Call = dyn_cast<CallBase>(&I);
    return Call ? changesNothing(*Call) : !I.mayWriteToMemory();
  }

  /// Whether an address is that of a variable without a name, as the first argument of `std::min<int>(n, m)` has one.
  static bool isTemporary(const Value *Pointer) {
    auto *A = dyn_cast<AllocaInst>(Pointer->stripInBoundsConstantOffsets());
    return A && !variableAt(const_cast<AllocaInst *>(A));
  }

  /// Whether the same arm of each conditional expression in the head is taken each time.
  bool areChoicesFixed() const {
    return all_of(Head, [this](const BasicBlock *BB) {
      auto *Branch = dyn_cast<BranchInst>(BB->getTerminator());
      return BB == TestBlock || !Branch || !Branch->isConditional() || isFixedBound(Branch->getCondition());
    });
  }

  /// Whether a counter tested by `!=` may pass 0 on its way, as one that begins with `row - 1`: what the directive
  /// makes of it, a test by `<`, would find nothing to do. The run does not tell.
  bool mayWrap() const {
    if (iterator(Counter))
      return false;
    const DIType *T = plainType(declarationOf(Counter)->getType());
    auto *Basic = dyn_cast_or_null<DIBasicType>(T);
    bool IsSigned =
        Basic && (Basic->getEncoding() == dwarf::DW_ATE_signed || Basic->getEncoding() == dwarf::DW_ATE_signed_char);
    return Basic && !IsSigned && !(StepsUp && isa<ConstantInt>(First));
  }

  /// Whether the loop's first test is known to hold: of a counter that begins with one constant, against another one.
  bool runsAlways() const {
    auto *Branch = cast<BranchInst>(TestBlock->getTerminator());
    auto *Test = dyn_cast<ICmpInst>(Branch->getCondition());
    std::optional<APInt> Left = Test ? atFirst(Test->getOperand(0)) : std::nullopt;
    std::optional<APInt> Right = Test ? atFirst(Test->getOperand(1)) : std::nullopt;
    return Left && Right &&
           ICmpInst::compare(*Left, *Right, Test->getPredicate()) == L.contains(Branch->getSuccessor(0));
  }

  /// What a side of the test is before the first iteration, if that is a constant.
  std::optional<APInt> atFirst(const Value *Side) const {
    if (auto *Constant = dyn_cast<ConstantInt>(Side))
      return Constant->getValue();
    auto *Cast = dyn_cast<CastInst>(Side);
    auto *Load = dyn_cast<LoadInst>(Cast ? Cast->getOperand(0) : Side);
    auto *Begin = dyn_cast<ConstantInt>(First);
    if (!Load || Load->getPointerOperand() != Counter || !Begin || (Cast && !isa<SExtInst, ZExtInst>(Cast)))
      return std::nullopt;
    unsigned Width = Side->getType()->getIntegerBitWidth();
    return Cast && isa<SExtInst>(Cast) ? Begin->getValue().sext(Width) : Begin->getValue().zext(Width);
  }

  /// Whether there is another way out of the loop than its header's test, but for code that ends the program.
  bool leavesElsewhere() const {
    for (BasicBlock *BB : Text.Blocks)
      for (BasicBlock *Next : successors(BB))
        if (!L.contains(Next) && BB != TestBlock && (isOrdinaryExit(Next) || !standsInside(*Next)))
          return true;
    return false;
  }

  /// Whether what ends the program stands in the loop's own text: a jump to it would leave the loop.
  bool standsInside(BasicBlock &First) const {
    SmallSetVector<BasicBlock *, 8> Open;
    Open.insert(&First);
    for (size_t K = 0; K < Open.size(); ++K) {
      if (!First.isLandingPad() && any_of(*Open[K], [&](const Instruction &I) {
            return !I.isDebugOrPseudoInst() && I.getDebugLoc() && !isInHead(I.getDebugLoc().get());
          }))
        return false;
      Open.insert(succ_begin(Open[K]), succ_end(Open[K]));
    }
    return true;
  }

  /// The local variable that a value is loaded from, with no more than a conversion.
  static Object counted(Value *V) {
    while (auto *Cast = dyn_cast<CastInst>(V))
      V = Cast->getOperand(0);
    auto *Load = dyn_cast<LoadInst>(V);
    return Load && isa<AllocaInst>(Load->getPointerOperand()) ? Load->getPointerOperand() : nullptr;
  }

  /// The iterator that lies at an address, if it is a local variable.
  static Object iterator(Value *Address) {
    auto *A = dyn_cast<AllocaInst>(Address);
    return A && isContiguousIterator(*A) ? A : nullptr;
  }

  /// Whether the loop's last block steps the iterator, nothing else does, and that is all that happens there.
  bool isIteratorSteppedIn(BasicBlock &Latch, AllocaInst &Variable) {
    const CallBase *Step = nullptr;
    for (Instruction &I : Latch) {
      auto *Store = dyn_cast<StoreInst>(&I);
      if (Store && !isTemporary(Store->getPointerOperand())) // what it++ returns is a temporary
        return false;
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || isa<IntrinsicInst>(Call))
        continue;
      if (Step)
        return false;
      Step = Call;
    }
    std::optional<IteratorStep> Known = Step ? stepOf(*Step) : std::nullopt;
    if (!Known || Step->getArgOperand(0) != &Variable ||
        !isChangedOnlyBy(*Step, Variable, [this](const BasicBlock *BB) { return L.contains(BB); }))
      return false;
    StepsByOne = !Known->Distance;
    StepsUp = Known->IsUp;
    return StepsByOne || isFixedBound(Known->Distance);
  }

  /// Whether the loop's last block steps the variable, nothing else does, and that is all that happens there.
  bool isSteppedIn(BasicBlock &Latch, Object Variable) {
    if (Object Iterator = iterator(Variable))
      return isIteratorSteppedIn(Latch, *cast<AllocaInst>(Iterator));
    const ObjectTouches &In = Text.T.Of.find(Variable)->second;
    bool MayBeAssigned = In.MayBeReached;
    for (BasicBlock *BB : Text.Blocks)
      if (auto Known = In.In.find(BB); Known != In.In.end())
        for (const Touch &Each : Known->second) {
          if (Each.Writes && !Each.TakesAddress && BB != &Latch)
            return false;
          MayBeAssigned |= Each.TakesAddress && (Each.Writes || In.IsKept);
        }
    StoreInst *Step = nullptr;
    for (Instruction &I : Latch) {
      if (isa<CallBase>(I) && !I.isDebugOrPseudoInst())
        return false;
      if (auto *Store = dyn_cast<StoreInst>(&I)) {
        if (Step || Store->getPointerOperand() != Variable)
          return false;
        Step = Store;
      }
    }
    if (!Step || !isStep(Step->getValueOperand(), Variable))
      return false;
    IsReached = MayBeAssigned;
    IsReachedInsideOnly = isReachedInsideOnly(*cast<AllocaInst>(Variable));
    ConstantStep = constantStep(*Step->getValueOperand());
    return true;
  }

  /// Whether the address of a variable is taken in the loop alone. A pointer from before it leads to the variable from
  /// before it, and a directive gives each thread another one.
  bool isReachedInsideOnly(AllocaInst &Variable) const {
    return all_of(usersOf(Variable), [&](const Instruction *I) {
      auto *Store = dyn_cast<StoreInst>(I);
      return L.contains(I) || isa<LoadInst>(I) || (Store && Store->getValueOperand() != &Variable) ||
             I->isDebugOrPseudoInst() || I->isLifetimeStartOrEnd();
    });
  }

  bool isStep(Value *V, Object Variable) {
    auto *I = dyn_cast<Instruction>(V);
    while (I && isa<CastInst>(I)) // of what is narrower than an int
      I = dyn_cast<Instruction>(I->getOperand(0));
    unsigned Opcode = I ? I->getOpcode() : 0;
    if (Opcode != Instruction::Add && Opcode != Instruction::Sub &&
        !(Opcode == Instruction::GetElementPtr && I->getNumOperands() == 2))
      return false;
    bool Swapped = Opcode == Instruction::Add && counted(I->getOperand(0)) != Variable;
    Value *Step = I->getOperand(Swapped ? 0 : 1);
    auto *Constant = dyn_cast<ConstantInt>(Step);
    StepsByOne = Constant && (Constant->isOne() || Constant->isMinusOne());
    StepsUp = StepsByOne && Constant->isMinusOne() == (Opcode == Instruction::Sub);
    return counted(I->getOperand(Swapped ? 1 : 0)) == Variable && isFixedBound(Step);
  }

  /// Whether a value is computed from what the loop's own text does not assign.
  bool isFixedBound(Value *Bound) const {
    SmallVector<Value *, 8> Open = {Bound};
    SmallPtrSet<Value *, 8> Seen;
    while (!Open.empty()) {
      auto *I = dyn_cast<Instruction>(Open.pop_back_val());
      if (!I || !Seen.insert(I).second)
        continue;
      if (isa<AllocaInst>(I) && (isTemporary(I) ? !isOfHead(*I, Open) : Text.isAssigned(I)))
        return false;
      if (!L.contains(I))
        continue;
      auto *Call = dyn_cast<CallBase>(I);
      if (isa<StoreInst>(I) || (isa<PHINode>(I) && !Head.contains(I->getParent())) ||
          (isa<LoadInst>(I) && mayBeAssigned(I->getOperand(0))) || (Call && !isFixedCall(*Call)))
        return false;
      Open.append(I->op_begin(), I->op_end());
    }
    return true;
  }

  /// Whether the loop uses a temporary in its head only. Appends what it is given there.
  bool isOfHead(Instruction &Temporary, SmallVectorImpl<Value *> &Given) const {
    for (Instruction *I : usersOf(cast<AllocaInst>(Temporary))) {
      auto *Built = dyn_cast<IntrinsicInst>(I);
      if (!L.contains(I) || (Built && Built->isLifetimeStartOrEnd()))
        continue;
      auto *Store = dyn_cast<StoreInst>(I);
      if (!Head.contains(I->getParent()) || !(Store || isa<LoadInst, CallBase, GetElementPtrInst>(I)))
        return false;
      if (Store)
        Given.push_back(Store->getValueOperand());
    }
    return true;
  }

  bool mayBeAssigned(Value *Pointer) const { return !isTemporary(Pointer) && Text.isAssigned(Pointer); }

  /// Whether a call has the same result each time if its arguments are the same, as far as the loop's text assigns what
  /// it reads.
  bool isFixedCall(const CallBase &Call) const {
    auto IsAssigned = [this](const Value *V) { return mayBeAssigned(const_cast<Value *>(V)); };
    if (isa<IntrinsicInst>(Call))
      return Call.doesNotAccessMemory();
    Function *Callee = Call.getCalledFunction();
    return Callee && changesNothing(Call) && none_of(Text.Everything.effectOfCalls({Callee}).Touched, IsAssigned) &&
           none_of(Call.args(), IsAssigned);
  }

  /// Whether the `for` assigns its counter before the loop, and nothing else: all that stands in its scope there. What
  /// a range-based `for` of C++ runs over is part of its head, and does not count.
  bool beginsWithCounterAlone() {
    for (BasicBlock &BB : *L.getHeader()->getParent())
      for (Instruction &I : BB)
        if (!L.contains(&BB) && isInHead(I.getDebugLoc().get()) && comesBefore(BB)) {
          std::optional<std::pair<Value *, Value *>> Set = assignment(I);
          if (!Set || isOfRange(Set->first) || isTemporary(Set->first))
            continue;
          if (Set->first != Counter || First)
            return false;
          First = Set->second;
        }
    return First;
  }

  /// The variable that an instruction assigns, and what it assigns. What a call does is not known: it may have been
  /// given the variable to construct it there.
  static std::optional<std::pair<Value *, Value *>> assignment(Instruction &I) {
    if (auto *Store = dyn_cast<StoreInst>(&I))
      return std::pair(Store->getPointerOperand()->stripInBoundsConstantOffsets(), Store->getValueOperand());
    if (auto *Copy = dyn_cast<MemTransferInst>(&I))
      return std::pair(Copy->getRawDest()->stripInBoundsConstantOffsets(), Copy->getRawSource());
    auto *Call = dyn_cast<CallBase>(&I);
    if (!Call || isa<IntrinsicInst>(Call) || !Call->getType()->isVoidTy())
      return std::nullopt;
    Value *To = Call->arg_empty() ? Call->getCalledOperand() : Call->getArgOperand(0);
    return std::pair(To, static_cast<Value *>(Call));
  }

  /// Whether a variable is one that a range-based `for` declares for itself: the range, and its end.
  static bool isOfRange(Value *Variable) {
    const DILocalVariable *V = variableAt(Variable);
    return V && V->isArtificial() && (startsWith(V->getName(), "__range") || startsWith(V->getName(), "__end"));
  }

  /// Whether control may get from a block to the loop: what an iteration does before it ends the program stands
  /// outside, too.
  bool comesBefore(BasicBlock &BB) const {
    SmallPtrSet<const BasicBlock *, 16> Seen;
    SmallVector<BasicBlock *, 16> Open = {&BB};
    while (!Open.empty()) {
      BasicBlock *At = Open.pop_back_val();
      if (At == L.getHeader())
        return true;
      if (Seen.insert(At).second)
        Open.append(succ_begin(At), succ_end(At));
    }
    return false;
  }

  /// Whether an instruction from outside the loop stands in the scope that clang opens where the `for` begins.
  bool isInHead(const DILocation *At) const {
    for (const DIScope *S = At && !At->getInlinedAt() ? At->getScope() : nullptr;
         isa_and_nonnull<DILexicalBlockBase>(S); S = S->getScope())
      if (isScopeOfFor(S))
        return true;
    return false;
  }

  bool isScopeOfFor(const DIScope *S) const {
    auto *Block = dyn_cast<DILexicalBlock>(S);
    return Block && Block->getFile() == Text.Start.getFile() && Block->getLine() == Text.Start.getLine() &&
           Block->getColumn() == Text.Start.getColumn();
  }

  const LoopText &Text;
  const Loop &L;
  SmallSetVector<BasicBlock *, 4> Head; // the header, and what comes before the test and with it
  BasicBlock *TestBlock = nullptr;
  Object Counter = nullptr;
  Value *First = nullptr; // what the counter begins with
  bool StepsByOne = false, StepsUp = false, IsReached = false, IsReachedInsideOnly = true;
  std::string ConstantStep;
};

} // namespace

ForHead headOf(const LoopText &Text) { return HeadReader(Text).read(); }

} // namespace tracekit
