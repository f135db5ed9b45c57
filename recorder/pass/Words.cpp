// Words.cpp: code that computes the words an operation records.
#include "Operations.h"

#include "Compat.h"

using namespace llvm;

namespace tracekit {

static Value *laneAddress(const Operation &Op, IRBuilder<> &B) {
  Type *Word = B.getInt64Ty();
  if (Op.Layout == LaneLayout::Scattered)
    return B.CreatePtrToInt(B.CreateExtractElement(Op.Address, uint64_t(Op.Lane)), Word);
  Value *Before = B.getInt64(Op.Lane);
  if (Op.Layout == LaneLayout::Packed) {
    Before = B.getInt64(0);
    for (unsigned Lane = 0; Lane < Op.Lane; ++Lane)
      Before = B.CreateAdd(Before, B.CreateZExt(B.CreateExtractElement(Op.Mask, uint64_t(Lane)), Word));
  }
  return B.CreateAdd(B.CreatePtrToInt(Op.Address, Word), B.CreateMul(Before, B.getInt64(Op.Size)));
}

static Value *dynamicSize(const Operation &Op, IRBuilder<> &B) {
  Type *Word = B.getInt64Ty();
  if (Op.Mask)
    return B.CreateSelect(B.CreateExtractElement(Op.Mask, uint64_t(Op.Lane)), B.getInt64(Op.Size), B.getInt64(0));
  Value *Size = B.getInt64(Op.Size);
  if (Op.Kind == TK_OP_STACK_ALLOC || Op.Kind == TK_OP_STACK_FREE) {
    if (Op.Bytes) // a count of elements
      Size = B.CreateMul(B.CreateZExtOrTrunc(Op.Bytes, Word), Size);
  } else if (Op.Bytes) {
    return B.CreateZExtOrTrunc(Op.Bytes, Word);
  }
  return Op.Scalable ? B.CreateMul(B.CreateIntrinsic(Intrinsic::vscale, {Word}, {}), Size) : Size;
}

Value *baseWord(const Operation &Op, IRBuilder<> &B) {
  if (Op.Layout != LaneLayout::Whole)
    return laneAddress(Op, B);
  Type *Word = B.getInt64Ty();
  return Op.Base->getType()->isPointerTy() ? B.CreatePtrToInt(Op.Base, Word) : B.CreateSExtOrTrunc(Op.Base, Word);
}

SmallVector<Value *, 4> recordedWords(const Operation &Op, IRBuilder<> &B) {
  SmallVector<Value *, 4> Words;
  auto AsWord = [&](Value *V) {
    return V->getType()->isPointerTy() ? B.CreatePtrToInt(V, B.getInt64Ty()) : B.CreateSExtOrTrunc(V, B.getInt64Ty());
  };
  bool Lane = Op.Layout != LaneLayout::Whole;
  if (Op.BaseKind == TK_BASE_RECORDED)
    Words.push_back(baseWord(Op, B));
  if (Op.Flags & TK_OPFLAG_DYNAMIC_SIZE)
    Words.push_back(dynamicSize(Op, B));
  appendValue(Op, B, Words);
  if (Op.Flags & TK_OPFLAG_GROUND_TRUTH)
    Words.push_back(Lane ? laneAddress(Op, B) : AsWord(Op.Address));
  return Words;
}

} // namespace tracekit
