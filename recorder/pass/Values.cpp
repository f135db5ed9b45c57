// Values.cpp: the bits that a load or a store moves, as words to record (tracekit cc --values).
#include "Operations.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace llvm;

namespace tracekit {

/// Whether a register holds the bytes of a `T` in memory, and all of them.
static bool isExact(const Type *T, const DataLayout &DL) {
  const Type *Scalar = T->getScalarType();
  if (isa<ScalableVectorType>(T) || DL.isBigEndian() || (T->isVectorTy() && Scalar->isX86_FP80Ty()))
    return false;
  if (Scalar->isPointerTy())
    return !DL.isNonIntegralPointerType(const_cast<Type *>(Scalar));
  return Scalar->isIntegerTy() || Scalar->isFloatingPointTy();
}

static unsigned wordsOf(Type *T, const DataLayout &DL) {
  uint64_t Bytes = isExact(T, DL) ? DL.getTypeStoreSize(T).getFixedValue() : 0;
  return Bytes <= MaxValueBytes ? divideCeil(Bytes, 8) : 0;
}

void Classifier::recordValue(Operation &Op, Type *T) const {
  bool Loads = Op.Kind == TK_OP_LOAD || Op.Kind == TK_OP_ATOMIC;
  bool Stores = Op.Kind == TK_OP_STORE || Op.Kind == TK_OP_ATOMIC;
  if (!(Loads && Asked.Loads) && !(Stores && Asked.Stores))
    return;
  Op.ValueWords = wordsOf(T, DL) * (Loads && Stores ? 2 : 1);
  if (!Op.ValueWords)
    return;
  Op.Flags |= TK_OPFLAG_VALUE;
  Op.After = Loads;
}

/// The bits of `V`, the first byte lowest, zeros behind.
static void appendBits(Value *V, const DataLayout &DL, IRBuilder<> &B, SmallVectorImpl<Value *> &Words) {
  if (V->getType()->isPtrOrPtrVectorTy())
    V = B.CreatePtrToInt(V, DL.getIntPtrType(V->getType()));
  uint64_t Bits = DL.getTypeSizeInBits(V->getType()).getFixedValue();
  unsigned Count = wordsOf(V->getType(), DL);
  Type *Word = B.getInt64Ty();
  if (Count > 1 && Bits == 64 * Count) {
    V = B.CreateBitCast(V, FixedVectorType::get(Word, Count));
    for (unsigned K = 0; K < Count; ++K)
      Words.push_back(B.CreateExtractElement(V, uint64_t(K)));
    return;
  }
  V = B.CreateZExt(B.CreateBitCast(V, B.getIntNTy(Bits)), B.getIntNTy(64 * Count));
  for (unsigned K = 0; K < Count; ++K)
    Words.push_back(B.CreateTrunc(K ? B.CreateLShr(V, 64 * K) : V, Word));
}

/// What is stored, with the bits fixed that the program leaves open: those recorded and those stored are to be the
/// same. Not of 16-bit floats: where the target has none, freeze makes a float of it and needs a library to come back.
static Value *storedValue(Instruction &I, IRBuilder<> &B) {
  Use &Operand = I.getOperandUse(0); // of a store and of the masked forms alike
  const Type *Scalar = Operand->getType()->getScalarType();
  if (!Scalar->isHalfTy() && !Scalar->isBFloatTy() && !isGuaranteedNotToBeUndefOrPoison(Operand))
    Operand.set(B.CreateFreeze(Operand));
  return Operand;
}

/// What a read-modify-write read, and what memory holds after it.
static std::pair<Value *, Value *> updatedValue(Instruction &I, IRBuilder<> &B) {
  if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
    return {Update, buildAtomicRMWValue(Update->getOperation(), B, Update, Update->getValOperand())};
  auto &Exchange = cast<AtomicCmpXchgInst>(I);
  Value *Before = B.CreateExtractValue(&Exchange, 0);
  return {Before, B.CreateSelect(B.CreateExtractValue(&Exchange, 1), Exchange.getNewValOperand(), Before)};
}

void appendValue(const Operation &Op, IRBuilder<> &B, SmallVectorImpl<Value *> &Words) {
  if (!Op.ValueWords)
    return;
  const DataLayout &DL = Op.At->getModule()->getDataLayout();
  auto Append = [&](Value *V) {
    appendBits(Op.Layout == LaneLayout::Whole ? V : B.CreateExtractElement(V, uint64_t(Op.Lane)), DL, B, Words);
  };
  if (Op.Kind == TK_OP_ATOMIC) {
    auto [Before, After] = updatedValue(*Op.At, B);
    Append(Before);
    Append(After);
  } else {
    Append(Op.Kind == TK_OP_LOAD ? Op.At : storedValue(*Op.At, B));
  }
}

} // namespace tracekit
