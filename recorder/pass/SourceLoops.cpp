// SourceLoops.cpp: see SourceLoops.h.
#include "SourceLoops.h"

#include "Compat.h"
#include "DoHead.h"
#include "Escapes.h"
#include "Names.h"
#include "Pointees.h"
#include "References.h"
#include "Signs.h"
#include "SourceTypes.h"
#include "Temporaries.h"
#include "ThreadPrivate.h"
#include "Unset.h"
#include "format.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"

#include <utility>

using namespace llvm;

namespace tracekit {

bool SourceLoop::holds(const DILocation &At) const {
  std::pair<unsigned, unsigned> Place = {At.getLine(), At.getColumn()};
  return At.getFile() == Start->getFile() && Place >= std::pair(Start->getLine(), Start->getColumn()) && Place <= End;
}

bool areOneCopy(const DILocation &A, const DILocation &B) {
  return A.getInlinedAt() == B.getInlinedAt() && A.getScope()->getSubprogram() == B.getScope()->getSubprogram();
}

/// The same for all instances of a template.
static std::string placeOf(const DISubprogram &Function) {
  return (Function.getFilename() + ":" + Twine(Function.getLine())).str();
}

ArrayRef<const SourceLoop *> SourceLoops::of(const DISubprogram &Function) const {
  auto [Known, New] = BySubprogram.try_emplace(&Function);
  if (New)
    if (auto Entry = ByFunction.find(placeOf(Function)); Entry != ByFunction.end())
      Known->second = Entry->second;
  return Known->second;
}

const SourceLoop *SourceLoops::find(const DILocation *Start) const {
  auto Known = Start ? Loops.find(placeKey(*Start)) : Loops.end();
  return Known == Loops.end() ? nullptr : &Known->second;
}

namespace {

StringRef nameOfGlobal(Object Variable) {
  auto *G = dyn_cast<GlobalVariable>(Variable);
  return G ? globalName(*G) : "";
}

/// A part of a structured binding: its place in the function's `Touches::Of`, and its declaration.
using Binding = std::pair<unsigned, const DILocalVariable *>;

SmallVector<Binding, 0> bindingsOf(const Touches &T, SourceText &Sources) {
  SmallVector<Binding, 0> Found;
  for (auto [Place, Each] : enumerate(T.Of))
    if (auto *Local = isa<AllocaInst>(Each.first) ? variableAt(Each.first) : nullptr;
        Local && Sources.isInBinding(*Local))
      Found.push_back({Place, Local});
  return Found;
}

/// One loop of one function.
class LoopInSource {
public:
  LoopInSource(const LoopText &Text, const SourceAccesses &Accesses, ArrayRef<Binding> Bindings,
               ArrayRef<Pointee> Pointees, SourceUpdates &Updates, SourceText &Sources)
      : Text(Text), L(Text.L), Accesses(Accesses), Bindings(Bindings), Pointees(Pointees), Updates(Updates),
        Sources(Sources), IsDo(isFortran(Text.Start)), Head(IsDo ? doHeadOf(Text) : headOf(Text)) {}

  SourceLoop describe() {
    SourceLoop Result;
    Result.IsCanonical = Head.IsCanonical && Sources.isFor(Text.Start) &&
                         (IsDo || !Sources.castsInTest(Text.Start, declarationOf(Head.Counter)->getName()));
    Result.HasPragma = Sources.hasLoopPragma(Text.Start);
    Result.IsConcurrent = Sources.isConcurrent(Text.Start);
    Result.IsConstexpr = Sources.isConstexpr(*Text.Start.getScope()->getSubprogram()) || isInsideConcurrent();
    Result.HasWordMacro = Sources.replacesWords(*Text.Start.getFile());
    Result.IsBoundComputed = Head.IsCanonical && Head.HasTemporaries;
    Result.Escapes = escapesOf(L, Text.Blocks);
    if (!IsDo)
      Result.Unset = unsetVariables(Text);
    Result.Start = &Text.Start;
    Result.End = endOf(L, Text.Start);
    Result.CopiesMemory = any_of(Text.Blocks, [](const BasicBlock *BB) {
      return any_of(*BB, [](const Instruction &I) { return isa<MemIntrinsic>(I); });
    });
    Result.UsesThreadLocal = any_of(Text.Blocks, [](const BasicBlock *BB) { return any_of(*BB, isOfThread); }) ||
                             any_of(Text.Callees.Touched, [](const GlobalVariable *G) { return isPerThread(*G); });
    SmallSetVector<Object, 16> Candidates;
    for (auto [Place, Each] : enumerate(Text.T.Of))
      if (Text.Touched[Place] || (Each.second.MayBeReached && !isOutOfScope(Each.first)))
        Candidates.insert(Each.first);
    for (GlobalVariable &G : L.getHeader()->getModule()->globals()) // in an order that is the same in each build
      if (Text.Callees.Written.contains(&G))
        Candidates.insert(&G);
    for (auto [Place, Declared] : Bindings)
      Result.UsesBinding |= Text.Touched[Place] && !isDeclaredInside(Declared);
    for (Object Variable : Candidates)
      if (std::optional<uint32_t> Flags = flagsOf(Variable)) {
        const DIVariable *Declared = declarationOf(Variable);
        std::string Name = (Declared ? Declared->getName() : nameOfGlobal(Variable)).str();
        if (auto *G = dyn_cast<GlobalVariable>(Variable); G && Name.empty() && *Flags & TK_VARIABLE_RENAMED)
          Name = sourceName(namedMemory(G)); // clang's own: what a static reference or constant pointer is bound to
        bool IsInside = Declared && isDeclaredInside(Declared);
        if (IsInside)
          *Flags &= ~TK_VARIABLE_USED_AFTER;
        bool IsReachedCounter = Variable == Head.Counter && *Flags & TK_VARIABLE_REACHED; // it lies in memory
        if (!Name.empty() && (IsReachedCounter || !IsInside))
          Result.Variables.push_back({Name, Declared, *Flags, {}, updateOf(Variable, *Flags)});
      }
    for (const Pointee &P : Pointees)
      if (isFixed(P))
        addPointee(P, Result);
    addReferences(Result);
    return Result;
  }

private:
  /// What is to be said of a variable; nothing if the loop does not write it.
  std::optional<uint32_t> flagsOf(Object Variable) const {
    static const ObjectTouches None;
    auto Known = Text.T.Of.find(Variable);
    const ObjectTouches &In = Known == Text.T.Of.end() ? None : Known->second;
    RegionEffect E = Text.effectOn(In);
    auto *G = dyn_cast<GlobalVariable>(Variable);
    bool Called = G && Text.Callees.Touched.contains(G);
    bool CalledWrites = G && Text.Callees.Written.contains(G);
    // The address of a local variable that no call keeps is found by those calls alone that are given it.
    bool Reached = In.MayBeReached && (G || In.IsKept) && Text.mayReach(Variable);
    // Another file's variable, of which this one has the address, stays in memory: the run shows it without a row.
    bool IsElsewhere = G && G->isDeclaration() && !G->isThreadLocal();
    if (!E.Writes && !CalledWrites && (IsElsewhere || !Reached || !In.MayBeStored))
      return std::nullopt;
    const DIVariable *Declared = declarationOf(Variable);
    uint32_t Flags = G ? TK_VARIABLE_GLOBAL : 0;
    auto Set = [&](uint32_t Flag, bool Holds) { Flags |= Holds ? Flag : 0; };
    Set(TK_VARIABLE_INDUCTION, Variable == Head.Counter);
    Set(TK_VARIABLE_READ_FIRST, E.ReadsFirst || (G && Text.Callees.ReadFirst.contains(G)));
    Set(TK_VARIABLE_SOMETIMES, !E.WritesAlways);
    Set(TK_VARIABLE_CALLEE, Called);
    Set(TK_VARIABLE_REACHED, E.TakesAddress || Reached);
    Set(TK_VARIABLE_LENT, E.TakesAddress && !In.IsKept && !G);
    Set(TK_VARIABLE_RENAMED, (G && isRenamed(*G, In)) || (IsDo && isShared(Variable)));
    Set(TK_VARIABLE_WITHIN, G && ((Declared && isStaticInside(*Declared)) || bringsNames()));
    Set(TK_VARIABLE_SHARED, Declared && isStaticMember(*Declared));
    Set(TK_VARIABLE_VARYING, E.Varies || (G && Text.Callees.Varying.contains(G)));
    Set(TK_VARIABLE_USED_AFTER, isUsedAfter(Variable, In));
    Set(TK_VARIABLE_NO_REDUCTION, Declared && !isReducible(Declared->getType()));
    Set(TK_VARIABLE_NO_COPY, Declared && !isPlainCopy(Declared->getType()));
    Set(TK_VARIABLE_WHOLE, Declared && isWhole(Declared->getType()));
    Set(TK_VARIABLE_OTHER_SIGN, Declared && isComparedWithOtherSign(L, Declared->getType(), [&](const LoadInst &Load) {
                                  return getUnderlyingObject(Load.getPointerOperand()) == Variable;
                                }));
    if (Variable == Head.Counter) {
      Set(TK_VARIABLE_SOMETIMES, !Head.RunsAlways);
      if (Head.IsReached)
        Flags = (Flags | TK_VARIABLE_REACHED) & ~TK_VARIABLE_LENT;
      if (IsDo) // no procedure that is given the counter may assign it
        Flags &= ~TK_VARIABLE_REACHED;
      Set(TK_VARIABLE_WATCHED, Flags & TK_VARIABLE_REACHED && L.getHeader()->getParent()->hasOptNone());
      Set(TK_VARIABLE_ELSEWHERE, Flags & TK_VARIABLE_REACHED && Head.IsElsewhere);
    }
    return Flags;
  }

  /// Of the counter nothing is said that its head does not show, nor of what pointers or called functions may change.
  std::optional<SourceUpdate> updateOf(Object Variable, uint32_t Flags) const {
    if (Variable == Head.Counter && !Head.Step.empty())
      return SourceUpdate{TK_PHI_INDUCTION, Head.Step};
    constexpr uint32_t Others = TK_VARIABLE_INDUCTION | TK_VARIABLE_CALLEE | TK_VARIABLE_REACHED | TK_VARIABLE_VARYING;
    if (!(Flags & TK_VARIABLE_READ_FIRST) || (Flags & Others))
      return std::nullopt;
    std::optional<SourceUpdate> Found = Updates.of(Variable, L);
    if (Found && Found->Kind == TK_PHI_REDUCTION && (Flags & TK_VARIABLE_NO_REDUCTION))
      return std::nullopt;
    return Found;
  }

  /// Whether memory has several names in Fortran: a common block, or variables that EQUIVALENCE puts into one place.
  static bool isShared(Object Variable) {
    if (isa<GlobalVariable>(Variable))
      return !declarationOf(Variable);
    auto Found = variablesOf(Variable);
    return any_of(Found, [&](const DILocalVariable *V) { return V->getName() != Found.front()->getName(); });
  }

  /// Whether the loop's text has another name for a global variable somewhere.
  bool isRenamed(const GlobalVariable &G, const ObjectTouches &In) const {
    bool HasName = !globalName(G).empty(); // of those that have none, some are given to the run-time library
    return any_of(In.In, [&](const auto &Each) {
      return L.contains(Each.first) && any_of(Each.second, [&](const Touch &T) {
               return (HasName || !T.TakesAddress) && Accesses.isRenamed(T.At, namedMemory(&G));
             });
    });
  }

  /// Whether the address is the same in all iterations, as far as the loop's own text assigns what it comes from.
  bool isFixed(const Pointee &P) const {
    return none_of(P.Variables, [&](Value *V) { return Text.isAssigned(V); }) &&
           none_of(P.Others, [&](const Instruction *I) { return L.contains(I); });
  }

  void addPointee(const Pointee &P, SourceLoop &Result) const {
    RegionEffect E = Text.effectOn(P.At);
    uint32_t Flags = TK_VARIABLE_POINTEE | TK_VARIABLE_USED_AFTER | (E.ReadsFirst ? TK_VARIABLE_READ_FIRST : 0) |
                     (E.WritesAlways ? 0 : TK_VARIABLE_SOMETIMES);
    SourceVariable New{P.Name, nullptr, Flags, {}, std::nullopt};
    for (const PointeeStore &Store : P.Stores)
      if (L.contains(Store.By))
        New.Stores.push_back(Store.Store);
    if (!New.Stores.empty())
      Result.Variables.push_back(std::move(New));
  }

  /// Adds the references and dummy arguments from outside by whose names the loop's text accumulates in numbers.
  void addReferences(SourceLoop &Result) const {
    SmallSetVector<const DILocalVariable *, 4> Stored;
    for (BasicBlock *BB : Text.Blocks)
      for (Instruction &I : *BB)
        if (auto *Store = dyn_cast<StoreInst>(&I))
          if (const DILocalVariable *V = referenceAt(Store->getPointerOperand()); V && !isDeclaredInside(V))
            Stored.insert(V);
    for (const DILocalVariable *V : Stored) {
      std::optional<SourceUpdate> Update = Updates.of(*V, L);
      if (!Update)
        continue;
      bool IsOtherSign = isComparedWithOtherSign(
          L, V->getType(), [&](const LoadInst &Load) { return referenceAt(Load.getPointerOperand()) == V; });
      uint32_t Flags = TK_VARIABLE_REFERENCE | TK_VARIABLE_READ_FIRST | TK_VARIABLE_USED_AFTER |
                       (isWhole(V->getType()) ? TK_VARIABLE_WHOLE : 0) | (IsOtherSign ? TK_VARIABLE_OTHER_SIGN : 0);
      Result.Variables.push_back({V->getName().str(), V, Flags, {}, std::move(Update)});
    }
  }

  /// Whether code behind the loop may read what the loop leaves in a variable.
  bool isUsedAfter(Object Variable, const ObjectTouches &In) const {
    auto *G = dyn_cast<GlobalVariable>(Variable);
    // A local variable that no call keeps is read by its name, or by calls that are given its address.
    if ((In.MayBeReached && (G || In.IsKept)) || (G && !G->hasLocalLinkage()))
      return true;
    bool ReadByOthers = G && Text.Everything.isReadSomewhere(*G);
    SmallPtrSet<const BasicBlock *, 16> Seen;
    SmallVector<BasicBlock *, 16> Open;
    L.getExitBlocks(Open);
    while (!Open.empty()) {
      BasicBlock *BB = Open.pop_back_val();
      if (!Seen.insert(BB).second)
        continue;
      bool Rewritten = false;
      bool IsLeft = IsDo && Variable == Head.Counter && leavesCounter(*BB, Variable, L); // by the loop itself
      if (auto Known = In.In.find(BB); Known != In.In.end())
        for (const Touch &Next : Known->second) {
          if (std::exchange(IsLeft, false))
            continue;
          if (Next.Reads && !Rewritten)
            return true;
          Rewritten |= Next.Writes && !Next.Varies && Next.Begin == 0 && Next.End == In.Size;
        }
      if (ReadByOthers && (Text.T.CallsSomething.contains(BB) || isa<ReturnInst>(BB->getTerminator())))
        return true;
      if (!Rewritten)
        Open.append(succ_begin(BB), succ_end(BB));
    }
    return false;
  }

  /// Whether a local variable does not live while the loop runs: it is declared behind it, inside, or in a block that
  /// does not hold the loop. (One declared inside is looked at where the loop's text uses it.)
  bool isOutOfScope(Object Variable) const {
    auto *Local = isa<AllocaInst>(Variable) ? variableAt(Variable) : nullptr;
    if (!Local)
      return false;
    if (Local->getFile() == Text.Start.getFile() && Local->getLine() > Text.Start.getLine())
      return true;
    const DIScope *Declared = Local->getScope()->getNonLexicalBlockFileScope();
    for (const DIScope *S = Text.Start.getScope(); S; S = S->getScope())
      if (S == Declared)
        return false;
    return Local->getScope()->getSubprogram() == Text.Start.getScope()->getSubprogram();
  }

  bool isDeclaredInside(const DIVariable *Declared) const {
    auto *Local = dyn_cast<DILocalVariable>(Declared);
    for (const DIScope *S = Local ? Local->getScope() : nullptr; isa_and_nonnull<DILexicalBlockBase>(S);
         S = S->getScope())
      if (auto *Block = dyn_cast<DILexicalBlock>(S);
          Block && Block->getFile() == Text.Start.getFile() &&
          std::pair(Block->getLine(), Block->getColumn()) >= std::pair(Text.Start.getLine(), Text.Start.getColumn()))
        return true;
    return false;
  }

  /// Whether a static variable of the loop's function is declared in the lines of the loop; of its block clang says
  /// nothing.
  bool isStaticInside(const DIVariable &Declared) const {
    const DILocation &Start = Text.Start;
    return Declared.getScope() == Start.getScope()->getSubprogram() && Declared.getFile() == Start.getFile() &&
           Declared.getLine() >= Start.getLine() && Declared.getLine() <= endOf(L, Start).first;
  }

  /// Whether a DO CONCURRENT construct holds the loop.
  bool isInsideConcurrent() const {
    for (const Loop *Around = IsDo ? L.getParentLoop() : nullptr; Around; Around = Around->getParentLoop())
      if (DebugLoc Start = Around->getStartLoc(); Start && Sources.isDoConcurrent(*Start))
        return true;
    return false;
  }

  /// Whether the loop's body may give global variables a name that they do not have where the loop stands.
  bool bringsNames() const {
    if (!BringsNames)
      BringsNames = Sources.hasDeclaration(Text.Start, endOf(L, Text.Start));
    return *BringsNames;
  }

  static bool isStaticMember(const DIVariable &Declared) {
    auto *Global = dyn_cast<DIGlobalVariable>(&Declared);
    return Global && Global->getStaticDataMemberDeclaration();
  }

  const LoopText &Text;
  const Loop &L;
  const SourceAccesses &Accesses;
  ArrayRef<Binding> Bindings;
  ArrayRef<Pointee> Pointees;
  SourceUpdates &Updates;
  SourceText &Sources;
  bool IsDo; // a DO construct of Fortran
  ForHead Head;
  mutable std::optional<bool> BringsNames;
};

} // namespace

void SourceLoops::look(Module &M, function_ref<const TargetLibraryInfo &(Function &)> Library) {
  Loops.clear();
  Order.clear();
  ByFunction.clear();
  BySubprogram.clear();
  Accesses = SourceAccesses();
  Members = SourceMembers();
  Looked = M.getModuleIdentifier();
  if (M.debug_compile_units().empty())
    return;
  ModuleTouches Everything(M);
  Pointees Behind;
  SourceText Sources;
  markThreadPrivate(M, Sources);
  Members.look(M);
  for (GlobalVariable &G : M.globals())
    Accesses.look(G);
  for (Function &F : M) {
    if (F.isDeclaration() || !F.getSubprogram())
      continue;
    Accesses.look(F, Everything.of(F));
    Members.look(F);
    DominatorTree DT(F);
    LoopInfo LI(DT);
    if (LI.empty())
      continue;
    markTemporaries(F, LI);
    ReversePostOrderTraversal<Function *> RPO(&F);
    SmallVector<BasicBlock *, 32> Blocks(RPO.begin(), RPO.end());
    SourceUpdates Updates(F, LI, DT, Library(F));
    SmallVector<Binding, 0> Bindings = bindingsOf(Everything.of(F), Sources);
    for (Loop *L : LI.getLoopsInPreorder())
      if (DebugLoc Start = L->getStartLoc()) {
        auto [Entry, New] = Loops.try_emplace(placeKey(*Start));
        LoopText Text(*L, *Start, Everything.of(F), Everything, Blocks);
        Entry->second = LoopInSource(Text, Accesses, Bindings, Behind.of(F), Updates, Sources).describe();
        Entry->second.IsCanonical &= New; // two loops at one place come from a macro
        if (!New) {
          Entry->second.Unset.clear();
          continue;
        }
        Order.push_back(&Entry->second);
        ByFunction[placeOf(*Start->getScope()->getSubprogram())].push_back(&Entry->second);
      }
  }
}

} // namespace tracekit
