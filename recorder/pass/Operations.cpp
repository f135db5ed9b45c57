// Operations.cpp: classifies the instructions of a function.
#include "Operations.h"

#include "Clocks.h"
#include "Compat.h"
#include "Leaves.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

static uint8_t typeClass(const Type *T) {
  if (T->isIntegerTy())
    return TK_TYPE_INTEGER;
  if (T->isFloatingPointTy())
    return TK_TYPE_FLOAT;
  if (T->isPointerTy())
    return TK_TYPE_POINTER;
  if (T->isVectorTy())
    return TK_TYPE_VECTOR;
  return T->isAggregateType() ? TK_TYPE_AGGREGATE : TK_TYPE_UNKNOWN;
}

/// Other address spaces (x86: segments) have no address that could be compared with an object's.
static bool isFlatMemory(const Value *Address) {
  return Address->getType()->getScalarType()->getPointerAddressSpace() == 0 && !Address->isSwiftError();
}

Classifier::Classifier(Function &F, const TargetLibraryInfo &TLI, const DominatorTree &DT, Extras Asked)
    : F(F), DL(F.getParent()->getDataLayout()), TLI(TLI), DT(DT), Asked(Asked) {
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (auto *A = dyn_cast<AllocaInst>(&I); A && !A->isStaticAlloca())
        DynamicAllocas.push_back(A);
}

void Classifier::access(uint8_t Kind, Instruction &I, Value *Address, Type *T, uint8_t Flags, Operations &Out) const {
  if (!isFlatMemory(Address))
    return;
  TypeSize Size = DL.getTypeStoreSize(T);
  Operation Op{Kind};
  Op.Flags = Flags | (Size.isScalable() ? TK_OPFLAG_DYNAMIC_SIZE : 0);
  Op.TypeClass = typeClass(T);
  Op.Size = Size.getKnownMinValue();
  Op.Scalable = Size.isScalable();
  Op.recordInPlace(Address);
  Op.Origin = Op.At = &I;
  if (!isa<CallBase>(I))
    recordValue(Op, T);
  Out.push_back(Op);
}

void Classifier::bulk(uint8_t Kind, Instruction &I, Value *Address, Value *Length, uint8_t Flags,
                      Operations &Out) const {
  auto *Constant = dyn_cast<ConstantInt>(Length);
  if (!isFlatMemory(Address) || (Constant && Constant->isZero()))
    return;
  Operation Op{Kind};
  Op.Flags = Flags | (Constant ? 0 : TK_OPFLAG_DYNAMIC_SIZE);
  Op.TypeClass = TK_TYPE_AGGREGATE;
  Op.Size = Constant ? Constant->getLimitedValue() : 0;
  Op.Bytes = Constant ? nullptr : Length;
  Op.recordInPlace(Address);
  Op.Origin = Op.At = &I;
  Out.push_back(Op);
}

void Classifier::copy(Instruction &I, Value *To, Value *From, Value *Length, uint8_t Flags, Operations &Out) const {
  if (!isFlatMemory(To) || !isFlatMemory(From))
    return;
  bulk(TK_OP_COPY_FROM, I, From, Length, Flags, Out);
  bulk(TK_OP_COPY_TO, I, To, Length, Flags, Out);
}

void Classifier::lanes(IntrinsicInst &I, uint8_t Kind, LaneLayout Layout, Value *Address, Value *Mask, Type *T,
                       Operations &Out) const {
  auto *Vector = dyn_cast<FixedVectorType>(T);
  if (!Vector || !isFlatMemory(Address))
    return; // lanes of scalable vectors cannot be enumerated: touchesUnseenMemory
  for (unsigned Lane = 0; Lane < Vector->getNumElements(); ++Lane) {
    Operation Op{Kind};
    Op.Flags = TK_OPFLAG_DYNAMIC_SIZE;
    Op.TypeClass = typeClass(Vector->getElementType());
    Op.Layout = Layout;
    Op.Lane = Lane;
    Op.Size = DL.getTypeStoreSize(Vector->getElementType());
    Op.recordInPlace(Address);
    Op.Mask = Mask;
    Op.Origin = Op.At = &I;
    if (DL.getTypeStoreSize(Vector).getFixedValue() <= MaxValueBytes)
      recordValue(Op, Vector->getElementType());
    Out.push_back(Op);
  }
}

/// The mask: the only operand that is a vector of booleans, but for the value stored.
static Value *maskOf(IntrinsicInst &I, bool Stores) {
  for (Value *Operand : drop_begin(I.args(), Stores ? 1 : 0))
    if (Operand->getType()->isVectorTy() && Operand->getType()->getScalarType()->isIntegerTy(1))
      return Operand;
  llvm_unreachable("a masked access without a mask");
}

bool Classifier::masked(IntrinsicInst &I, Operations &Out) const {
  auto Load = [&](LaneLayout Layout) {
    lanes(I, TK_OP_LOAD, Layout, I.getArgOperand(0), maskOf(I, false), I.getType(), Out);
    return true;
  };
  auto Store = [&](LaneLayout Layout) {
    lanes(I, TK_OP_STORE, Layout, I.getArgOperand(1), maskOf(I, true), I.getArgOperand(0)->getType(), Out);
    return true;
  };
  switch (I.getIntrinsicID()) {
  case Intrinsic::masked_load:
    return Load(LaneLayout::Strided);
  case Intrinsic::masked_gather:
    return Load(LaneLayout::Scattered);
  case Intrinsic::masked_expandload:
    return Load(LaneLayout::Packed);
  case Intrinsic::masked_store:
    return Store(LaneLayout::Strided);
  case Intrinsic::masked_scatter:
    return Store(LaneLayout::Scattered);
  case Intrinsic::masked_compressstore:
    return Store(LaneLayout::Packed);
  default:
    return false;
  }
}

Operation Classifier::stackAlloc(AllocaInst &A, Instruction *At, bool After) const {
  Operation Op{TK_OP_STACK_ALLOC};
  TypeSize Element = DL.getTypeAllocSize(A.getAllocatedType());
  auto *Count = dyn_cast<ConstantInt>(A.getArraySize());
  Op.Size = Element.getKnownMinValue() * (Count ? Count->getLimitedValue() : 1);
  Op.Scalable = Element.isScalable();
  Op.Bytes = Count ? nullptr : A.getArraySize();
  Op.Flags = !Count || Element.isScalable() ? TK_OPFLAG_DYNAMIC_SIZE : 0;
  Op.TypeClass = typeClass(A.getAllocatedType());
  Op.recordInPlace(&A);
  Op.Origin = &A;
  Op.At = At;
  Op.After = After;
  return Op;
}

void Classifier::stackFree(AllocaInst &A, Instruction &At, Operations &Out) const {
  Operation Op = stackAlloc(A, &At, false);
  Op.Kind = TK_OP_STACK_FREE;
  Op.Origin = &At;
  Out.push_back(Op);
}

void Classifier::entry(Operations &Out) const {
  for (Argument &Parameter : F.args()) {
    if (!Parameter.hasByValAttr() || !isFlatMemory(&Parameter))
      continue;
    Operation Op{TK_OP_STACK_ALLOC};
    Op.Size = DL.getTypeAllocSize(Parameter.getParamByValType());
    Op.TypeClass = TK_TYPE_AGGREGATE;
    Op.recordInPlace(&Parameter);
    Out.push_back(Op);
  }
}

/// Frees variable-length arrays where the stack pointer from before them is restored. Only the plain case:
/// otherwise the frame's end, or the next object at the same place, ends them.
void Classifier::stackRestore(IntrinsicInst &I, Operations &Out) const {
  auto *Save = dyn_cast<IntrinsicInst>(I.getArgOperand(0));
  if (!Save || Save->getIntrinsicID() != Intrinsic::stacksave)
    return;
  for (AllocaInst *A : DynamicAllocas)
    if (DT.dominates(Save, A) && DT.dominates(A, &I))
      stackFree(*A, I, Out);
}

/// Bytes of the target's va_list, which llvm.va_start fills.
static uint64_t vaListBytes(const Module &M) {
  Triple Target(targetTriple(M));
  if (Target.getArch() == Triple::x86_64 && !Target.isOSWindows())
    return Target.isX32() ? 16 : 24;
  if (Target.isAArch64() && !Target.isOSDarwin() && !Target.isOSWindows())
    return 32;
  return M.getDataLayout().getPointerSize();
}

void Classifier::intrinsic(IntrinsicInst &I, Operations &Out) const {
  if (auto *Transfer = dyn_cast<AnyMemTransferInst>(&I))
    return copy(I, Transfer->getRawDest(), Transfer->getRawSource(), Transfer->getLength(),
                Transfer->isVolatile() ? TK_OPFLAG_VOLATILE : 0, Out);
  if (auto *Set = dyn_cast<AnyMemSetInst>(&I))
    return bulk(TK_OP_SET, I, Set->getRawDest(), Set->getLength(), Set->isVolatile() ? TK_OPFLAG_VOLATILE : 0, Out);
  if (masked(I, Out))
    return;
  Type *Length = Type::getInt64Ty(I.getContext());
  switch (I.getIntrinsicID()) {
  case Intrinsic::lifetime_start:
    if (auto *A = dyn_cast<AllocaInst>(lifetimeObject(I))) {
      Operation Op = stackAlloc(*A, &I, false);
      Op.Origin = &I;
      Out.push_back(Op);
    }
    return;
  case Intrinsic::lifetime_end:
    if (auto *A = dyn_cast<AllocaInst>(lifetimeObject(I)))
      stackFree(*A, I, Out);
    return;
  case Intrinsic::stackrestore:
    return stackRestore(I, Out);
  case Intrinsic::vastart:
    return bulk(TK_OP_SET, I, I.getArgOperand(0), ConstantInt::get(Length, vaListBytes(*F.getParent())), 0, Out);
  case Intrinsic::vacopy:
    return copy(I, I.getArgOperand(0), I.getArgOperand(1), ConstantInt::get(Length, vaListBytes(*F.getParent())), 0,
                Out);
  default:
    return;
  }
}

/// The library's own bulk operations touch exactly the memory that the intrinsics of the same name do.
void Classifier::libraryCopy(CallBase &Call, Operations &Out) const {
  LibFunc Known;
  Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration() || Call.isNoBuiltin() || !TLI.getLibFunc(*Callee, Known))
    return;
  auto Argument = [&](unsigned Index) { return Call.getArgOperand(Index); };
  switch (Known) {
  case LibFunc_memcpy:
  case LibFunc_memmove:
  case LibFunc_mempcpy:
  case LibFunc_memcpy_chk:
  case LibFunc_memmove_chk:
  case LibFunc_mempcpy_chk:
    return copy(Call, Argument(0), Argument(1), Argument(2), TK_OPFLAG_LIBRARY, Out);
  case LibFunc_bcopy:
    return copy(Call, Argument(1), Argument(0), Argument(2), TK_OPFLAG_LIBRARY, Out);
  case LibFunc_memset:
  case LibFunc_memset_chk:
    return bulk(TK_OP_SET, Call, Argument(0), Argument(2), TK_OPFLAG_LIBRARY, Out);
  case LibFunc_bzero:
    return bulk(TK_OP_SET, Call, Argument(0), Argument(1), TK_OPFLAG_LIBRARY, Out);
  default:
    return;
  }
}

void Classifier::call(CallBase &Call, Operations &Out) const {
  for (unsigned Index = 0; Index < Call.arg_size(); ++Index)
    if (Call.isByValArgument(Index)) // the caller copies it into the callee's frame
      access(TK_OP_LOAD, Call, Call.getArgOperand(Index), Call.getParamByValType(Index), 0, Out);
  libraryCopy(Call, Out);
  auto Stores = [&](Value *Place, uint64_t Bytes) {
    bulk(TK_OP_SET, Call, Place, ConstantInt::get(Type::getInt64Ty(Call.getContext()), Bytes), TK_OPFLAG_LIBRARY, Out);
  };
  if (StoredTime Time = storedTime(Call); Time.Place)
    Stores(Time.Place, Time.Bytes);
  for (const StoredPart &Part : storedParts(Call))
    Stores(Part.Place, Part.Bytes);
  Operation Op{TK_OP_CALL};
  Op.Origin = Op.At = &Call;
  Out.push_back(Op);
}

void Classifier::classify(Instruction &I, Operations &Out) const {
  auto Flags = [](bool Volatile, bool Atomic) -> uint8_t {
    return (Volatile ? TK_OPFLAG_VOLATILE : 0) | (Atomic ? TK_OPFLAG_ATOMIC : 0);
  };
  if (auto *Load = dyn_cast<LoadInst>(&I)) {
    access(TK_OP_LOAD, I, Load->getPointerOperand(), I.getType(), Flags(Load->isVolatile(), Load->isAtomic()), Out);
  } else if (auto *Store = dyn_cast<StoreInst>(&I)) {
    access(TK_OP_STORE, I, Store->getPointerOperand(), Store->getValueOperand()->getType(),
           Flags(Store->isVolatile(), Store->isAtomic()), Out);
  } else if (auto *Update = dyn_cast<AtomicRMWInst>(&I)) {
    access(TK_OP_ATOMIC, I, Update->getPointerOperand(), Update->getValOperand()->getType(),
           Flags(Update->isVolatile(), true), Out);
  } else if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I)) {
    access(TK_OP_ATOMIC, I, Exchange->getPointerOperand(), Exchange->getNewValOperand()->getType(),
           Flags(Exchange->isVolatile(), true), Out);
  } else if (auto *A = dyn_cast<AllocaInst>(&I)) {
    if (!A->isStaticAlloca() && isFlatMemory(A))
      Out.push_back(stackAlloc(*A, A, true));
  } else if (auto *Call = dyn_cast<CallBase>(&I)) {
    if (auto *Intrinsic = dyn_cast<IntrinsicInst>(Call))
      intrinsic(*Intrinsic, Out);
    if (mayReenter(I) || callsLeaf(I) || touchesUnseenMemory(*Call))
      call(*Call, Out);
  }
  if (!mayReenter(I))
    pointers(I, &I, Out);
}

bool returnsTwice(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  return Call && (Call->hasFnAttr(Attribute::ReturnsTwice) || Call->getIntrinsicID() == Intrinsic::eh_sjlj_setjmp);
}

bool isSetjmp(const Instruction &I) {
  static constexpr StringLiteral Names[] = {"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp"};
  auto *Call = dyn_cast<CallInst>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  return Callee && Call->getType()->isIntegerTy() && returnsTwice(I) && is_contained(Names, Callee->getName());
}

bool callsReturnTwice(const Function &F) { return any_of(instructions(F), returnsTwice); }

bool mayReenter(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  if (!Call || Call->isInlineAsm())
    return false;
  switch (Call->getIntrinsicID()) {
  case Intrinsic::not_intrinsic:
    return !callsLeaf(I);
  case Intrinsic::eh_sjlj_longjmp: // control goes on in another activation: the record must be finished before
    return true;
  default:
    return returnsTwice(I);
  }
}

static bool asmTouchesMemory(const CallBase &Call) {
  for (const InlineAsm::ConstraintInfo &Constraint : cast<InlineAsm>(Call.getCalledOperand())->ParseConstraints()) {
    if (Constraint.isIndirect)
      return true;
    for (const std::string &Code : Constraint.Codes)
      if (Constraint.Type == InlineAsm::isClobber && Code == "{memory}")
        return true;
  }
  return false;
}

bool touchesUnseenMemory(const CallBase &Call) {
  if (Call.isInlineAsm())
    return asmTouchesMemory(Call);
  auto *Known = dyn_cast<IntrinsicInst>(&Call);
  if (!Known || !Call.mayReadOrWriteMemory() || Known->isAssumeLikeIntrinsic() || isa<AnyMemIntrinsic>(Known))
    return false;
  switch (Known->getIntrinsicID()) {
  case Intrinsic::prefetch:
  case Intrinsic::stackrestore:
  case Intrinsic::vastart:
  case Intrinsic::vacopy:
  case Intrinsic::vaend:
  case Intrinsic::eh_typeid_for:
  case Intrinsic::clear_cache:
    return false;
  case Intrinsic::masked_load:
  case Intrinsic::masked_gather:
  case Intrinsic::masked_expandload:
    return !isa<FixedVectorType>(Call.getType());
  case Intrinsic::masked_store:
  case Intrinsic::masked_scatter:
  case Intrinsic::masked_compressstore:
    return !isa<FixedVectorType>(Call.getArgOperand(0)->getType());
  default:
    return any_of(Call.args(), [](const Use &U) { return U->getType()->isPtrOrPtrVectorTy(); });
  }
}

} // namespace tracekit
