// Pointees.cpp: see Pointees.h.
#include "Pointees.h"

#include "Compat.h"
#include "Names.h"
#include "References.h"
#include "SourceTypes.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tracekit {

/// Of an address that is computed of more parts, or in more steps, the rest is not followed.
static constexpr unsigned MostParts = 100, DeepestAddress = 12;
/// So many are followed to the callers of a function: closures have few, and classes' members are not inlined together.
static constexpr unsigned MostOfCallee = 32;
/// So many stores at one of them, by so many calls: the ways through the calls of a parser are beyond number.
static constexpr unsigned MostToldStores = 32, MostCalls = 16;

static bool isNamedObject(const Value *V) {
  auto *A = dyn_cast<AllocaInst>(V);
  return (A && A->isStaticAlloca()) || isa<GlobalVariable>(V);
}

/// Whether a variable is one that clang has made: what a reference to the value of an expression is bound to.
static bool isNameless(const Value *V) {
  auto *A = dyn_cast<AllocaInst>(V);
  return A && A->isStaticAlloca() && variablesOf(const_cast<AllocaInst *>(A)).empty();
}

/// The value of a local variable that is assigned once and whose address goes nowhere, as a parameter's or that of a
/// reference; null of others.
static Value *findOnlyValue(Value *Variable) {
  Value *Stored = nullptr;
  if (!isa<AllocaInst>(Variable))
    return nullptr;
  for (User *U : Variable->users()) {
    auto *Store = dyn_cast<StoreInst>(U);
    auto *Call = dyn_cast<IntrinsicInst>(U);
    if (Store && Store->getPointerOperand() == Variable && Store->getValueOperand() != Variable && !Stored)
      Stored = Store->getValueOperand();
    else if (!isa<LoadInst>(U) && !(Call && (Call->isLifetimeStartOrEnd() || Call->isDebugOrPseudoInst())))
      return nullptr;
  }
  return Stored;
}

namespace {

/// Answers of findOnlyValue.
class OnlyValues {
public:
  Value *of(Value *Variable) {
    auto [Entry, New] = Known.try_emplace(Variable, nullptr);
    if (New)
      Entry->second = findOnlyValue(Variable);
    return Entry->second;
  }

private:
  DenseMap<Value *, Value *> Known;
};

/// Spells out how a value is computed, so that two computations of the same are spelled alike.
class Spelling {
public:
  Spelling(Pointee &Of, std::string &Text, OnlyValues &Only) : Of(Of), OS(Text), Only(Only) {}

  void spell(Value *V, unsigned Depth = 0) {
    bool Follow = Depth < DeepestAddress && Parts++ < MostParts;
    if (auto *Number = dyn_cast<ConstantInt>(V)) {
      OS << Number->getValue() << ' ';
    } else if (auto *Load = dyn_cast<LoadInst>(V); Load && Follow) {
      spellLoad(*Load->getPointerOperand(), Depth + 1);
    } else if (isa<CastInst, GEPOperator, BinaryOperator>(V) && Follow) {
      OS << cast<Operator>(V)->getOpcode() << '(';
      for (Value *Part : cast<Operator>(V)->operands())
        spell(Part, Depth + 1);
      if (auto *Element = dyn_cast<GEPOperator>(V))
        OS << *Element->getSourceElementType();
      OS << ')';
    } else {
      OS << static_cast<const void *>(V) << ' ';
      if (auto *I = dyn_cast<Instruction>(V); I && !isNamedObject(V))
        Of.Others.insert(I);
      if (auto *Given = dyn_cast<Argument>(V))
        Of.Arguments.insert(Given);
    }
  }

private:
  void spellLoad(Value &From, unsigned Depth) {
    if (Value *Known = Only.of(&From)) {
      if (isNameless(Known->stripInBoundsConstantOffsets())) // a loop that binds the reference has one each time
        for (User *U : From.users())
          if (auto *Store = dyn_cast<StoreInst>(U))
            Of.Others.insert(Store);
      return spell(Known, Depth);
    }
    Of.IsLoaded = true;
    OS << '[';
    spell(&From, Depth);
    OS << ']';
    if (Value *Variable = From.stripInBoundsConstantOffsets(); isNamedObject(Variable))
      Of.Variables.insert(Variable);
  }

  Pointee &Of;
  raw_string_ostream OS;
  OnlyValues &Only;
  unsigned Parts = 0;
};

/// What a value is called in the source, and its type there.
struct Named {
  std::string Name;
  const DIType *Type = nullptr;
};

} // namespace

/// The part of a structure or array at an offset: a member, a member's member. Of others what it is itself.
static Named partAt(Named Whole, uint64_t Offset) {
  auto *Composite = dyn_cast_or_null<DICompositeType>(plainType(Whole.Type));
  if (!Composite)
    return Offset ? Named() : Whole;
  if (Composite->getTag() == dwarf::DW_TAG_array_type) {
    const DIType *Element = Composite->getBaseType();
    uint64_t Size = Element ? Element->getSizeInBits() / 8 : 0;
    return Size ? partAt({Whole.Name + "[" + std::to_string(Offset / Size) + "]", Element}, Offset % Size) : Named();
  }
  for (DINode *Each : Composite->getElements())
    if (auto *Member = dyn_cast<DIDerivedType>(Each); Member && Member->getTag() == dwarf::DW_TAG_member) {
      uint64_t Begin = Member->getOffsetInBits() / 8, Size = Member->getSizeInBits() / 8;
      if (!Member->isStaticMember() && Begin <= Offset && Offset < Begin + Size)
        return partAt({Whole.Name + "." + Member->getName().str(), Member->getBaseType()}, Offset - Begin);
    }
  return {};
}

/// What a pointer leads to, `Offset` bytes on.
static Named behind(const Named &Pointer, uint64_t Offset) {
  auto *T = dyn_cast_or_null<DIDerivedType>(plainType(Pointer.Type));
  if (!T || Pointer.Name.empty())
    return {};
  const DIType *To = plainType(T->getBaseType());
  if (T->getTag() == dwarf::DW_TAG_reference_type || T->getTag() == dwarf::DW_TAG_rvalue_reference_type)
    return partAt({Pointer.Name, To}, Offset);
  if (T->getTag() != dwarf::DW_TAG_pointer_type || !To)
    return {};
  auto *Composite = dyn_cast<DICompositeType>(To);
  uint64_t Size = To->getSizeInBits() / 8;
  if (Composite && Composite->getTag() != dwarf::DW_TAG_array_type && Offset < Size) {
    Named Member = partAt({"", To}, Offset);
    bool IsCaptured = Pointer.Name == "this" && Composite->getName().empty(); // by a closure, whose class has no name
    return Member.Name.empty() ? Member
                               : Named{(IsCaptured ? "" : Pointer.Name + "->") + Member.Name.substr(1), Member.Type};
  }
  if (!Size)
    return {};
  if (!Offset)
    return {"*" + Pointer.Name, To};
  return partAt({Pointer.Name + "[" + std::to_string(Offset / Size) + "]", To}, Offset % Size);
}

/// What is loaded from a variable, or from what a pointer leads to.
static Named nameOfLoaded(Value *Pointer, const DataLayout &DL, unsigned Depth = 0) {
  APInt Offset(DL.getIndexTypeSizeInBits(Pointer->getType()), 0);
  Value *From = Pointer->stripAndAccumulateConstantOffsets(DL, Offset, /*AllowNonInbounds=*/true);
  if (Offset.isNegative() || Depth > DeepestAddress)
    return {};
  if (auto *G = dyn_cast<GlobalVariable>(From)) {
    SmallVector<DIGlobalVariableExpression *, 1> Debug;
    G->getDebugInfo(Debug);
    return Debug.empty()
               ? Named()
               : partAt({globalName(*G).str(), Debug.front()->getVariable()->getType()}, Offset.getZExtValue());
  }
  if (isa<AllocaInst>(From)) {
    const DILocalVariable *V = variableAt(From);
    return V ? partAt({V->getName().str(), V->getType()}, Offset.getZExtValue()) : Named();
  }
  auto *Load = dyn_cast<LoadInst>(From);
  return Load ? behind(nameOfLoaded(Load->getPointerOperand(), DL, Depth + 1), Offset.getZExtValue()) : Named();
}

namespace {

class Finder {
public:
  explicit Finder(Function &F) : DL(F.getParent()->getDataLayout()) {
    for (BasicBlock &BB : F)
      for (Instruction &I : BB)
        look(I);
  }

  std::vector<Pointee> found() {
    std::vector<Pointee> Result;
    for (Pointee &Each : All)
      if (!Each.Stores.empty()) {
        tellCallers(Each);
        Result.push_back(std::move(Each));
      }
    return Result;
  }

  /// Enters what a called function does with what it reaches through its arguments.
  void call(CallBase &Call, ArrayRef<Pointee> Callees) {
    for (const Pointee &Each : Callees.take_front(MostOfCallee))
      if (Each.Variables.empty() && Each.Others.empty() && !Each.Arguments.empty() &&
          all_of(Each.Arguments,
                 [&](Argument *Of) { return Each.IsLoaded || !isOfLocal(Call.getArgOperand(Of->getArgNo())); }))
        enter(Call, Each);
  }

private:
  static void tellCallers(Pointee &P) {
    for (const PointeeStore &Each : P.Stores)
      if (P.OfCallers.size() < MostToldStores && Each.Store.Through.size() < MostCalls &&
          !is_contained(P.OfCallers, Each.Store))
        P.OfCallers.push_back(Each.Store);
  }

  void look(Instruction &I) {
    if (auto *Load = dyn_cast<LoadInst>(&I)) {
      access(I, Load->getPointerOperand(), DL.getTypeStoreSize(Load->getType()), true);
    } else if (auto *Store = dyn_cast<StoreInst>(&I)) {
      access(I, Store->getPointerOperand(), DL.getTypeStoreSize(Store->getValueOperand()->getType()), false);
    } else if (auto *Moved = dyn_cast<MemIntrinsic>(&I)) {
      auto *Length = dyn_cast<ConstantInt>(Moved->getLength());
      if (!Length)
        return;
      if (auto *Copied = dyn_cast<MemTransferInst>(Moved))
        access(I, Copied->getSource(), Length->getZExtValue(), true);
      access(I, Moved->getDest(), Length->getZExtValue(), false);
    }
  }

  void access(Instruction &I, Value *Pointer, uint64_t Size, bool Reads) {
    APInt Offset(DL.getIndexTypeSizeInBits(Pointer->getType()), 0);
    Value *Base = Pointer->stripAndAccumulateConstantOffsets(DL, Offset, /*AllowNonInbounds=*/true);
    if (isOfVariable(Base) && (isNamedObject(Base) || !isa<GlobalVariable>(rootOf(Base))))
      return;
    std::string Key;
    Pointee New;
    Spelling(New, Key, Only).spell(Base);
    Key += '+' + std::to_string(Offset.getSExtValue()) + ':' + std::to_string(Size);
    auto [Entry, IsNew] = Known.try_emplace(Key, All.size());
    if (IsNew) {
      New.Name = nameOfLoaded(Pointer, DL).Name;
      if (const DILocalVariable *V = New.Name.empty() ? referenceAt(Pointer) : nullptr)
        New.Name = V->getName().str();
      New.At.Size = Size;
      All.push_back(std::move(New));
    }
    Pointee &P = All[Entry->second];
    P.At.In[I.getParent()].push_back({0, Size, false, Reads, !Reads, false, I.getDebugLoc().get()});
    if (!Reads && I.getDebugLoc() && I.getDebugLoc().getLine())
      P.Stores.push_back({&I, {I.getDebugLoc().get(), {}}});
  }

  void enter(CallBase &Call, const Pointee &Callees) {
    std::string Key;
    raw_string_ostream(Key) << static_cast<const void *>(&Callees) << ':';
    Pointee New;
    for (Argument *Of : Callees.Arguments) {
      Value *Given = Call.getArgOperand(Of->getArgNo());
      Spelling(New, Key, Only).spell(Given);
      if (Value *Variable = Given->stripInBoundsConstantOffsets(); Callees.IsLoaded && isNamedObject(Variable))
        New.Variables.insert(Variable); // what is loaded from it leads on
    }
    auto [Entry, IsNew] = Known.try_emplace(Key, All.size());
    if (IsNew) {
      New.Name = Callees.Name;
      New.At.Size = Callees.At.Size;
      All.push_back(std::move(New));
    }
    Function &Callee = *Call.getCalledFunction();
    ReversePostOrderTraversal<Function *> RPO(&Callee);
    SmallVector<BasicBlock *, 16> Blocks(RPO.begin(), RPO.end()), Ends;
    copy_if(Blocks, std::back_inserter(Ends), [](BasicBlock *BB) { return isa<ReturnInst>(BB->getTerminator()); });
    RegionEffect E = effectOf(Callees.At, Region(Blocks, Ends));
    Pointee &P = All[Entry->second];
    auto &Here = P.At.In[Call.getParent()];
    const DILocation *At = Call.getDebugLoc().get();
    if (E.ReadsFirst)
      Here.push_back({0, P.At.Size, false, true, false, false, At});
    Here.push_back({0, P.At.Size, !E.WritesAlways, false, true, false, At});
    for (const SourceStore &Each : Callees.OfCallers) {
      P.Stores.push_back({&Call, Each});
      P.Stores.back().Store.Through.push_back(Callee.getSubprogram());
    }
  }

  /// Whether an address is that of a local variable, or of one of a thread. Of a global one that a function is given
  /// the address of nothing tells that the optimiser keeps it in a register: it goes on to be in memory elsewhere.
  bool isOfLocal(Value *Address) { return isOfVariable(Address) && !isa<GlobalVariable>(rootOf(Address)); }

  /// Whether an address is that of a variable, also of one of a thread.
  bool isOfVariable(Value *Address) {
    Value *Root = rootOf(Address);
    bool IsBound = isNameless(Root) && getUnderlyingObject(Address, /*MaxLookup=*/0) != Root;
    return (isNamedObject(Root) && !IsBound) || isa<IntrinsicInst>(Root);
  }

  /// What a pointer is computed from: an object, if it can lead to no other.
  Value *rootOf(Value *Pointer) {
    for (unsigned Step = 0; Step < DeepestAddress; ++Step) {
      Pointer = Pointer->stripPointerCasts();
      auto *Load = dyn_cast<LoadInst>(Pointer);
      if (auto *Element = dyn_cast<GEPOperator>(Pointer))
        Pointer = Element->getPointerOperand();
      else if (Value *Known = Load ? Only.of(Load->getPointerOperand()) : nullptr)
        Pointer = Known;
      else
        break;
    }
    return Pointer;
  }

  const DataLayout &DL;
  std::vector<Pointee> All;
  StringMap<size_t> Known; // by the spelling of the address: where in `All`
  OnlyValues Only;
};

} // namespace

const std::vector<Pointee> &Pointees::of(Function &F) {
  auto [Entry, New] = Known.try_emplace(&F);
  if (New)
    Entry->second = std::make_unique<std::vector<Pointee>>();
  std::vector<Pointee> &Result = *Entry->second;
  if (!New)
    return Result;
  Finder Found(F);
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (auto *Call = dyn_cast<CallBase>(&I))
        if (Function *Callee = Call->getCalledFunction();
            Callee && !Callee->isDeclaration() && Callee->arg_size() <= Call->arg_size())
          Found.call(*Call, of(*Callee));
  return Result = Found.found();
}

} // namespace tracekit
