// TargetVectors.cpp: see TargetVectors.h.
#include "TargetVectors.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

static unsigned lanesOf(const Value *V) { return cast<FixedVectorType>(V->getType())->getNumElements(); }

/// The first lanes of a vector; behind those that it has, lanes of zeros.
static Value *firstLanes(IRBuilder<> &B, Value *Vector, unsigned Count) {
  unsigned Has = lanesOf(Vector);
  if (Has == Count)
    return Vector;
  SmallVector<int, 16> Lanes;
  for (unsigned Lane = 0; Lane < Count; ++Lane)
    Lanes.push_back(std::min(Lane, Has));
  return B.CreateShuffleVector(Vector, Constant::getNullValue(Vector->getType()), Lanes);
}

/// A mask of booleans: those of AVX and AVX2 are the sign bits of vectors.
static Value *booleans(IRBuilder<> &B, Value *Mask) {
  auto *T = cast<FixedVectorType>(Mask->getType());
  if (T->getScalarType()->isIntegerTy(1))
    return Mask;
  Type *Bits = VectorType::getInteger(T);
  return B.CreateICmpSLT(B.CreateBitCast(Mask, Bits), Constant::getNullValue(Bits));
}

/// What lanes of a gather or scatter access.
static Value *places(IRBuilder<> &B, Value *Base, Value *Index, Value *Scale, unsigned Count) {
  Type *Wide = FixedVectorType::get(B.getInt64Ty(), Count);
  Value *Distance = B.CreateSExt(firstLanes(B, Index, Count), Wide);
  Value *Bytes = ConstantInt::get(Wide, cast<ConstantInt>(Scale)->getZExtValue());
  return B.CreateGEP(B.getInt8Ty(), Base, B.CreateMul(Distance, Bytes));
}

/// Passed through, base, index, mask, scale. Where there are more results than indices, or lanes of the mask, the
/// others are zeros.
static Value *gather(IRBuilder<> &B, IntrinsicInst &I) {
  Value *Through = I.getArgOperand(0), *Index = I.getArgOperand(2), *Mask = booleans(B, I.getArgOperand(3));
  unsigned Count = std::min({lanesOf(Through), lanesOf(Index), lanesOf(Mask)});
  Value *From = places(B, I.getArgOperand(1), Index, I.getArgOperand(4), Count);
  Type *T = FixedVectorType::get(Through->getType()->getScalarType(), Count);
  Value *Found = B.CreateMaskedGather(T, From, Align(1), firstLanes(B, Mask, Count), firstLanes(B, Through, Count));
  return firstLanes(B, Found, lanesOf(Through));
}

/// Base, mask, index, data, scale.
static void scatter(IRBuilder<> &B, IntrinsicInst &I) {
  Value *Mask = booleans(B, I.getArgOperand(1)), *Index = I.getArgOperand(2), *Data = I.getArgOperand(3);
  unsigned Count = std::min({lanesOf(Data), lanesOf(Index), lanesOf(Mask)});
  Value *To = places(B, I.getArgOperand(0), Index, I.getArgOperand(4), Count);
  B.CreateMaskedScatter(firstLanes(B, Data, Count), To, Align(1), firstLanes(B, Mask, Count));
}

/// Whether parameters are vectors (v), pointers (p) and numbers that do not change (c) as a pattern says.
static bool takes(const IntrinsicInst &I, StringRef Pattern) {
  if (I.arg_size() != Pattern.size())
    return false;
  for (unsigned K = 0; K < Pattern.size(); ++K) {
    const Value *Given = I.getArgOperand(K);
    if (Pattern[K] == 'v'   ? !isa<FixedVectorType>(Given->getType())
        : Pattern[K] == 'p' ? !Given->getType()->isPointerTy()
                            : !isa<ConstantInt>(Given))
      return false;
  }
  return true;
}

/// The same for all processors, and whether there is one.
static bool isReplaced(IntrinsicInst &I) {
  StringRef Name = I.getCalledFunction()->getName();
  auto Is = [Name](StringRef Short, StringRef Long) {
    return Name.substr(0, Short.size()) == Short || (!Long.empty() && Name.substr(0, Long.size()) == Long);
  };
  IRBuilder<> B(&I);
  Value *Instead = nullptr;
  if (Is("llvm.x86.avx.maskload.", "llvm.x86.avx2.maskload.") && takes(I, "pv")) {
    Value *Mask = booleans(B, I.getArgOperand(1));
    Instead = B.CreateMaskedLoad(I.getType(), I.getArgOperand(0), Align(1), Mask, Constant::getNullValue(I.getType()));
  } else if (Is("llvm.x86.avx.maskstore.", "llvm.x86.avx2.maskstore.") && takes(I, "pvv")) {
    B.CreateMaskedStore(I.getArgOperand(2), I.getArgOperand(0), Align(1), booleans(B, I.getArgOperand(1)));
  } else if (Is("llvm.x86.avx2.gather.", "llvm.x86.avx512.mask.gather") && takes(I, "vpvvc")) {
    Instead = gather(B, I);
  } else if (Is("llvm.x86.avx512.mask.scatter", "") && takes(I, "pvvvc")) {
    scatter(B, I);
  } else {
    return false;
  }
  if (Instead)
    I.replaceAllUsesWith(Instead);
  return true;
}

void generaliseVectors(Function &F) {
  SmallVector<IntrinsicInst *, 8> Known;
  for (Instruction &I : instructions(F))
    if (auto *Intrinsic = dyn_cast<IntrinsicInst>(&I); Intrinsic && Intrinsic->getCalledFunction())
      Known.push_back(Intrinsic);
  for (IntrinsicInst *I : Known)
    if (isReplaced(*I))
      I->eraseFromParent();
}

} // namespace tracekit
