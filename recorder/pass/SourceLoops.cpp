// SourceLoops.cpp: see SourceLoops.h.
#include "SourceLoops.h"

#include "Causes.h"
#include "Compat.h"
#include "Names.h"
#include "Pointees.h"
#include "Touches.h"
#include "format.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Dominators.h"

using namespace llvm;

namespace tracekit {

/// A loop's place: the optimiser copies subprograms, so their names stand for them.
static std::string keyOf(const DILocation &Start) {
  const DISubprogram *Function = Start.getScope()->getSubprogram();
  StringRef Name = Function->getLinkageName().empty() ? Function->getName() : Function->getLinkageName();
  return (Name + ":" + Start.getFilename() + ":" + Twine(Start.getLine()) + ":" + Twine(Start.getColumn())).str();
}

const SourceLoop *SourceLoops::find(const DILocation *Start) const {
  auto Known = Start ? Loops.find(keyOf(*Start)) : Loops.end();
  return Known == Loops.end() ? nullptr : &Known->second;
}

namespace {

/// The functions of a module: what each touches, by itself and through what it calls.
class ModuleTouches {
public:
  explicit ModuleTouches(Module &M) {
    for (Function &F : M)
      if (!F.isDeclaration())
        Own[&F] = std::make_unique<Touches>(F);
    for (auto &[F, Of] : Own)
      for (auto &[Variable, In] : Of->Of)
        if (auto *G = dyn_cast<GlobalVariable>(Variable))
          enter(*F, *G, In);
  }

  const Touches &of(Function &F) const { return *Own.find(&F)->second; }

  /// Whether some function may read the variable before it writes it, so that what a loop leaves there counts. For
  /// variables that other files see, nobody knows.
  bool isReadSomewhere(const GlobalVariable &G) const {
    return !G.hasLocalLinkage() || ReadFirst.contains(&G) || Reached.contains(&G);
  }

  /// Adds the global variables that a call of `F` touches; those it may write are in `Written`, too, and those that it
  /// may read before it writes them in `ReadFirst`.
  struct CalleeEffect {
    SmallPtrSet<const GlobalVariable *, 8> Touched, Written, ReadFirst;
  };
  void addCallee(Function &F, CalleeEffect &Effect, SmallPtrSetImpl<Function *> &Seen) const {
    SmallVector<Function *, 8> Open = {&F};
    while (!Open.empty()) {
      Function *At = Open.pop_back_val();
      auto Known = Own.find(At);
      if (Known == Own.end() || !Seen.insert(At).second)
        continue;
      if (auto Direct = Globals.find(At); Direct != Globals.end())
        for (const auto &[G, E] : Direct->second) {
          Effect.Touched.insert(G);
          if (E.Writes)
            Effect.Written.insert(G);
          if (E.ReadsFirst)
            Effect.ReadFirst.insert(G);
        }
      for (const auto &[BB, Callees] : Known->second->Calls)
        Open.append(Callees.begin(), Callees.end());
    }
  }

private:
  void enter(Function &F, GlobalVariable &G, const ObjectTouches &In) {
    SmallVector<BasicBlock *, 32> Blocks;
    for (BasicBlock *BB : ReversePostOrderTraversal<Function *>(&F))
      Blocks.push_back(BB);
    RegionEffect E = effectOf(In, Blocks, {});
    Globals[&F].push_back({&G, E});
    if (E.ReadsFirst)
      ReadFirst.insert(&G);
    if (In.MayBeReached || E.TakesAddress)
      Reached.insert(&G);
  }

  DenseMap<Function *, std::unique_ptr<Touches>> Own;
  DenseMap<const Function *, SmallVector<std::pair<const GlobalVariable *, RegionEffect>, 4>> Globals;
  SmallPtrSet<const GlobalVariable *, 16> ReadFirst, Reached;
};

const DIVariable *declarationOf(Object Variable) {
  if (auto *G = dyn_cast<GlobalVariable>(Variable)) {
    SmallVector<DIGlobalVariableExpression *, 1> Debug;
    G->getDebugInfo(Debug);
    return Debug.empty() ? nullptr : Debug.front()->getVariable();
  }
  return variableAt(Variable);
}

StringRef nameOfGlobal(Object Variable) {
  auto *G = dyn_cast<GlobalVariable>(Variable);
  return G ? globalName(*G) : "";
}

bool isStructure(const DIVariable *Declared) {
  const DIType *T = Declared ? Declared->getType() : nullptr;
  while (auto *Derived = dyn_cast_or_null<DIDerivedType>(T)) {
    if (Derived->getTag() == dwarf::DW_TAG_pointer_type)
      return false;
    T = Derived->getBaseType();
  }
  if (auto *Basic = dyn_cast_or_null<DIBasicType>(T))
    return Basic->getEncoding() == dwarf::DW_ATE_complex_float; // clang's reductions of them need another library
  auto *Composite = dyn_cast_or_null<DICompositeType>(T);
  return Composite && Composite->getTag() != dwarf::DW_TAG_array_type &&
         Composite->getTag() != dwarf::DW_TAG_enumeration_type;
}

/// One loop of one function.
class LoopInSource {
public:
  LoopInSource(const Loop &L, const DILocation &Start, const Touches &T, const ModuleTouches &Everything,
               ArrayRef<BasicBlock *> Order, ArrayRef<Pointee> Pointees)
      : L(L), Start(Start), T(T), Everything(Everything), Pointees(Pointees) {
    for (BasicBlock *BB : Order)
      if (L.contains(BB))
        Blocks.push_back(BB);
    L.getLoopLatches(Latches);
    SmallPtrSet<Function *, 8> Seen;
    for (BasicBlock *BB : Blocks)
      if (auto Known = T.Calls.find(BB); Known != T.Calls.end())
        for (Function *Callee : Known->second)
          Everything.addCallee(*Callee, Callees, Seen);
  }

  SourceLoop describe() {
    SourceLoop Result;
    Result.IsCanonical = findCounter();
    findEscapes(Result);
    SmallSetVector<Object, 16> Candidates;
    for (const auto &[Variable, In] : T.Of)
      if ((In.MayBeReached && !isDeclaredLater(Variable)) ||
          any_of(In.In, [&](const auto &Each) { return L.contains(Each.first); }))
        Candidates.insert(Variable);
    for (GlobalVariable &G : L.getHeader()->getModule()->globals()) // in an order that is the same in each build
      if (Callees.Written.contains(&G))
        Candidates.insert(&G);
    for (Object Variable : Candidates)
      if (std::optional<uint32_t> Flags = flagsOf(Variable)) {
        const DIVariable *Declared = declarationOf(Variable);
        StringRef Name = Declared ? Declared->getName() : nameOfGlobal(Variable);
        if (!Name.empty() && !(Declared && isDeclaredInside(Declared)))
          Result.Variables.push_back({Name.str(), Declared, *Flags, {}});
      }
    for (const Pointee &P : Pointees)
      if (isFixed(P))
        addPointee(P, Result);
    return Result;
  }

private:
  /// What is to be said of a variable; nothing if the loop does not write it.
  std::optional<uint32_t> flagsOf(Object Variable) const {
    static const ObjectTouches None;
    auto Known = T.Of.find(Variable);
    const ObjectTouches &In = Known == T.Of.end() ? None : Known->second;
    RegionEffect E = effectOf(In, Blocks, Latches);
    auto *G = dyn_cast<GlobalVariable>(Variable);
    bool Called = G && Callees.Touched.contains(G);
    bool CalledWrites = G && Callees.Written.contains(G);
    bool Reached = In.MayBeReached && any_of(Blocks, [&](BasicBlock *BB) { return T.mayReach(Variable, BB); });
    if (!E.Writes && !CalledWrites && !Reached)
      return std::nullopt;
    uint32_t Flags = G ? TK_VARIABLE_GLOBAL : 0;
    auto Set = [&](uint32_t Flag, bool Holds) { Flags |= Holds ? Flag : 0; };
    Set(TK_VARIABLE_INDUCTION, Variable == Counter);
    Set(TK_VARIABLE_READ_FIRST, E.ReadsFirst || (G && Callees.ReadFirst.contains(G)));
    Set(TK_VARIABLE_SOMETIMES, !E.WritesAlways);
    Set(TK_VARIABLE_CALLEE, Called);
    Set(TK_VARIABLE_REACHED, E.TakesAddress || Reached);
    Set(TK_VARIABLE_LENT, E.TakesAddress && !In.IsKept && !G);
    Set(TK_VARIABLE_VARYING, E.Varies);
    Set(TK_VARIABLE_USED_AFTER, isUsedAfter(Variable, In));
    Set(TK_VARIABLE_STRUCTURE, isStructure(declarationOf(Variable)));
    return Flags;
  }

  /// Whether the address is the same in all iterations, as far as the loop's own text assigns what it comes from.
  bool isFixed(const Pointee &P) const {
    return none_of(P.Variables, [&](Value *V) { return isAssigned(V); }) &&
           none_of(P.Others, [&](const Instruction *I) { return L.contains(I); });
  }

  void addPointee(const Pointee &P, SourceLoop &Result) const {
    RegionEffect E = effectOf(P.At, Blocks, Latches);
    uint32_t Flags = TK_VARIABLE_POINTEE | TK_VARIABLE_USED_AFTER | (E.ReadsFirst ? TK_VARIABLE_READ_FIRST : 0) |
                     (E.WritesAlways ? 0 : TK_VARIABLE_SOMETIMES);
    SourceVariable New{P.Name, nullptr, Flags, {}};
    for (const Instruction *Store : P.Stores)
      if (L.contains(Store))
        New.Stores.push_back(Store->getDebugLoc().get());
    if (!New.Stores.empty())
      Result.Variables.push_back(std::move(New));
  }

  /// Whether code behind the loop may read what the loop leaves in a variable.
  bool isUsedAfter(Object Variable, const ObjectTouches &In) const {
    auto *G = dyn_cast<GlobalVariable>(Variable);
    if (In.MayBeReached || (G && !G->hasLocalLinkage()))
      return true;
    bool ReadByOthers = G && Everything.isReadSomewhere(*G);
    SmallPtrSet<const BasicBlock *, 16> Seen;
    SmallVector<BasicBlock *, 16> Open;
    L.getExitBlocks(Open);
    while (!Open.empty()) {
      BasicBlock *BB = Open.pop_back_val();
      if (!Seen.insert(BB).second)
        continue;
      bool Rewritten = false;
      if (auto Known = In.In.find(BB); Known != In.In.end())
        for (const Touch &Next : Known->second) {
          if (Next.Reads && !Rewritten)
            return true;
          Rewritten |= Next.Writes && !Next.Varies && Next.Begin == 0 && Next.End == In.Size;
        }
      if (ReadByOthers && (T.CallsSomething.contains(BB) || isa<ReturnInst>(BB->getTerminator())))
        return true;
      if (!Rewritten)
        Open.append(succ_begin(BB), succ_end(BB));
    }
    return false;
  }

  /// Whether a local variable is declared in a line after that of the loop: behind it, or inside.
  bool isDeclaredLater(Object Variable) const {
    auto *Local = isa<AllocaInst>(Variable) ? variableAt(Variable) : nullptr;
    return Local && Local->getFile() == Start.getFile() && Local->getLine() > Start.getLine();
  }

  bool isDeclaredInside(const DIVariable *Declared) const {
    auto *Local = dyn_cast<DILocalVariable>(Declared);
    for (const DIScope *S = Local ? Local->getScope() : nullptr; isa_and_nonnull<DILexicalBlockBase>(S);
         S = S->getScope())
      if (auto *Block = dyn_cast<DILexicalBlock>(S);
          Block && Block->getFile() == Start.getFile() &&
          std::pair(Block->getLine(), Block->getColumn()) >= std::pair(Start.getLine(), Start.getColumn()))
        return true;
    return false;
  }

  // -- the head ----------------------------------------------------------------------------------

  /// Finds the counter of a `for` that OpenMP accepts; false if it is none.
  bool findCounter() {
    auto *Branch = dyn_cast<BranchInst>(L.getHeader()->getTerminator());
    BasicBlock *Latch = L.getLoopLatch();
    auto *Test = Branch && Branch->isConditional() ? dyn_cast<ICmpInst>(Branch->getCondition()) : nullptr;
    if (!Test || !Latch || Latch == L.getHeader() || leavesElsewhere())
      return false;
    Object Left = counted(Test->getOperand(0)), Right = counted(Test->getOperand(1));
    auto Steps = [&](Object Variable) { return Variable && isSteppedIn(*Latch, Variable); };
    bool IsLeft = Steps(Left);
    if (IsLeft == Steps(Right))
      return false;
    Counter = IsLeft ? Left : Right;
    return isFixedBound(Test->getOperand(IsLeft ? 1 : 0)) && beginsWithCounterAlone() &&
           declarationOf(Counter) != nullptr && (!Test->isEquality() || (StepsByOne && !mayWrap()));
  }

  /// Whether a counter tested by `!=` may pass 0 on its way, as one that begins with `row - 1`: what the directive
  /// makes of it, a test by `<`, would find nothing to do. The run does not tell.
  bool mayWrap() const {
    const DIType *T = plainType(declarationOf(Counter)->getType());
    auto *Basic = dyn_cast_or_null<DIBasicType>(T);
    bool IsSigned =
        Basic && (Basic->getEncoding() == dwarf::DW_ATE_signed || Basic->getEncoding() == dwarf::DW_ATE_signed_char);
    return Basic && !IsSigned && !(StepsUp && isa<ConstantInt>(First));
  }

  /// Whether there is another way out of the loop than its header's test, but for code that ends the program.
  bool leavesElsewhere() const {
    for (BasicBlock *BB : Blocks)
      for (BasicBlock *Next : successors(BB))
        if (!L.contains(Next) && BB != L.getHeader() && (isOrdinaryExit(Next) || !standsInside(*Next)))
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

  using BlockSet = SmallPtrSet<const BasicBlock *, 16>;

  /// Finds the branches of which one way leaves the loop for good and misses what the loop's own test leads to.
  void findEscapes(SourceLoop &Result) const {
    BasicBlock *Own = L.isLoopExiting(L.getHeader()) ? L.getHeader() : L.getLoopLatch();
    BlockSet Behind;
    for (BasicBlock *Next : Own ? successors(Own) : successors(L.getHeader()))
      if (Own && !L.contains(Next)) {
        walk(*Own, *Next, Behind);
        if (any_of(*Next, [](const Instruction &I) { return isLeavingAScope(I); }))
          Behind.erase(Next); // of this way only
      }
    if (Behind.empty() || !leavesSomewhere(Own))
      return;
    for (BasicBlock *BB : Blocks)
      if (auto *Branch = dyn_cast<BranchInst>(BB->getTerminator());
          Branch && Branch->isConditional() && Branch->getDebugLoc() && BB != Own)
        for (BasicBlock *Next : successors(BB)) {
          BlockSet Reached;
          walk(*BB, *Next, Reached);
          if (!Reached.contains(L.getHeader()) && any_of(Behind, [&](auto *Each) { return !Reached.contains(Each); }))
            Result.Escapes.push_back({Branch->getDebugLoc().getLine(), Branch->getDebugLoc().getCol()});
        }
  }

  bool leavesSomewhere(const BasicBlock *Own) const {
    return any_of(Blocks, [&](BasicBlock *BB) {
      return BB != Own && any_of(successors(BB), [&](BasicBlock *Next) { return !L.contains(Next); });
    });
  }

  /// Clang ends the lifetimes of a scope, and notes in a variable where control goes from there.
  static bool isLeavingAScope(const Instruction &I) {
    auto *Marker = dyn_cast<IntrinsicInst>(&I);
    auto *Store = dyn_cast<StoreInst>(&I);
    return (Marker && Marker->isLifetimeStartOrEnd()) ||
           (Store && isa<ConstantInt>(Store->getValueOperand()) && isWay(Store->getPointerOperand()));
  }

  static bool isWay(const Value *V) {
    return isa<AllocaInst>(V) && all_of(V->users(), [](const User *U) {
             if (auto *Store = dyn_cast<StoreInst>(U))
               return isa<ConstantInt>(Store->getValueOperand());
             return isa<LoadInst>(U) && all_of(U->users(), [](const User *By) { return isa<SwitchInst>(By); });
           });
  }

  /// The blocks that control may pass from the end of `From` through `To` on, up to the loop's header.
  void walk(BasicBlock &From, BasicBlock &To, BlockSet &Reached) const {
    using State = std::pair<BasicBlock *, ConstantInt *>; // where control goes from the scope that it leaves
    SmallSetVector<State, 16> Open;
    Open.insert({&To, wayAfter(From, nullptr)});
    for (size_t K = 0; K < Open.size(); ++K) {
      auto [BB, Way] = Open[K];
      Reached.insert(BB);
      if (BB == L.getHeader())
        continue;
      Way = wayAfter(*BB, Way);
      auto *Switch = dyn_cast<SwitchInst>(BB->getTerminator());
      auto *Load = Switch ? dyn_cast<LoadInst>(Switch->getCondition()) : nullptr;
      if (Way && Load && isWay(Load->getPointerOperand()) && Way->getType() == Load->getType())
        Open.insert({Switch->findCaseValue(Way)->getCaseSuccessor(), Way});
      else
        for (BasicBlock *Next : successors(BB))
          Open.insert({Next, Way});
    }
  }

  static ConstantInt *wayAfter(BasicBlock &BB, ConstantInt *Way) {
    for (Instruction &I : BB)
      if (auto *Store = dyn_cast<StoreInst>(&I); Store && isWay(Store->getPointerOperand()))
        Way = cast<ConstantInt>(Store->getValueOperand());
    return Way;
  }

  /// The local variable that a value is loaded from, with no more than a conversion.
  static Object counted(Value *V) {
    while (auto *Cast = dyn_cast<CastInst>(V))
      V = Cast->getOperand(0);
    auto *Load = dyn_cast<LoadInst>(V);
    return Load && isa<AllocaInst>(Load->getPointerOperand()) ? Load->getPointerOperand() : nullptr;
  }

  /// Whether the loop's last block steps the variable, nothing else does, and that is all that happens there.
  bool isSteppedIn(BasicBlock &Latch, Object Variable) {
    const ObjectTouches &In = T.Of.find(Variable)->second;
    if (In.MayBeReached)
      return false;
    for (BasicBlock *BB : Blocks)
      if (auto Known = In.In.find(BB); Known != In.In.end())
        for (const Touch &Each : Known->second)
          if ((Each.Writes && BB != &Latch) || Each.TakesAddress)
            return false;
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
    return Step && isStep(Step->getValueOperand(), Variable);
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
      if (!I || !L.contains(I) || !Seen.insert(I).second)
        continue;
      if (isa<PHINode, StoreInst>(I) || (isa<LoadInst>(I) && isAssigned(I->getOperand(0))))
        return false;
      Open.append(I->op_begin(), I->op_end());
    }
    return true;
  }

  bool isAssigned(Value *Pointer) const {
    auto Known = T.Of.find(Pointer);
    if (Known == T.Of.end())
      return false; // memory: the run says whether it changes
    RegionEffect E = effectOf(Known->second, Blocks, Latches);
    auto *G = dyn_cast<GlobalVariable>(Pointer);
    return E.Writes || (G && Callees.Written.contains(G));
  }

  /// Whether the `for` assigns its counter before the loop, and nothing else: all that stands in its scope there. What
  /// a range-based `for` of C++ runs over is part of its head, and does not count.
  bool beginsWithCounterAlone() {
    for (BasicBlock &BB : *L.getHeader()->getParent())
      for (Instruction &I : BB)
        if (!L.contains(&BB) && isInHead(I.getDebugLoc().get()) && comesBefore(BB)) {
          if (isa<CallBase>(I) && !I.isDebugOrPseudoInst() && !isa<IntrinsicInst>(I) && I.getType()->isVoidTy())
            return false;
          if (auto *Store = dyn_cast<StoreInst>(&I)) {
            if (isOfRange(Store->getPointerOperand()))
              continue;
            if (Store->getPointerOperand() != Counter || First)
              return false;
            First = Store->getValueOperand();
          }
        }
    return First;
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
      if (auto *Block = dyn_cast<DILexicalBlock>(S); Block && Block->getFile() == Start.getFile() &&
                                                     Block->getLine() == Start.getLine() &&
                                                     Block->getColumn() == Start.getColumn())
        return true;
    return false;
  }

  const Loop &L;
  const DILocation &Start;
  const Touches &T;
  const ModuleTouches &Everything;
  ArrayRef<Pointee> Pointees;
  SmallVector<BasicBlock *, 16> Blocks; // in reverse post-order, the header first
  SmallVector<BasicBlock *, 4> Latches;
  ModuleTouches::CalleeEffect Callees;
  Object Counter = nullptr;
  Value *First = nullptr; // what the counter begins with
  bool StepsByOne = false, StepsUp = false;
};

} // namespace

void SourceLoops::look(Module &M) {
  Loops.clear();
  Looked = M.getModuleIdentifier();
  if (M.debug_compile_units().empty())
    return;
  ModuleTouches Everything(M);
  for (Function &F : M) {
    if (F.isDeclaration() || !F.getSubprogram())
      continue;
    DominatorTree DT(F);
    LoopInfo LI(DT);
    if (LI.empty())
      continue;
    ReversePostOrderTraversal<Function *> RPO(&F);
    SmallVector<BasicBlock *, 32> Order(RPO.begin(), RPO.end());
    std::vector<Pointee> Pointees = pointeesOf(F);
    for (Loop *L : LI.getLoopsInPreorder())
      if (DebugLoc Start = L->getStartLoc()) {
        auto [Entry, New] = Loops.try_emplace(keyOf(*Start));
        Entry->second = LoopInSource(*L, *Start, Everything.of(F), Everything, Order, Pointees).describe();
        Entry->second.IsCanonical &= New; // two loops at one place come from a macro
      }
  }
}

} // namespace tracekit
