// Pointers.cpp: where pointers come from (tracekit cc --pointers).
//
// A pointer is created where it comes out of memory, out of a call, or out of a number. What moves within an object
// (getelementptr), chooses (phi, select) or converts has the pointer that it was made from, and is none; neither are
// the addresses of objects, which the objects' own events tell, and arguments, which the caller had.
#include "Operations.h"

#include "llvm/IR/Module.h"

using namespace llvm;

namespace tracekit {

/// Whether a call's result is no mere copy of an argument: intrinsics that return a pointer only pass it on.
static bool makesPointers(const CallBase &Call) { return Call.getIntrinsicID() == Intrinsic::not_intrinsic; }

static bool isSource(const Instruction &I) {
  if (auto *Call = dyn_cast<CallBase>(&I))
    return makesPointers(*Call);
  if (auto *Part = dyn_cast<ExtractValueInst>(&I)) {
    const Value *Whole = Part->getAggregateOperand();
    if (auto *Call = dyn_cast<CallBase>(Whole))
      return makesPointers(*Call);
    return isa<LoadInst, LandingPadInst, AtomicCmpXchgInst>(Whole);
  }
  return isa<LoadInst, IntToPtrInst, AtomicRMWInst, VAArgInst>(I);
}

static bool isFlat(const Type *T) { return T->isPtrOrPtrVectorTy() && T->getPointerAddressSpace() == 0; }

void Classifier::pointers(Instruction &I, Instruction *At, Operations &Out) const {
  if (!Asked.Pointers || !isFlat(I.getType()) || isa<ScalableVectorType>(I.getType()) || !isSource(I))
    return;
  auto *Vector = dyn_cast<FixedVectorType>(I.getType());
  for (unsigned Lane = 0; Lane < (Vector ? Vector->getNumElements() : 1); ++Lane) {
    Operation Op{TK_OP_POINTER};
    Op.TypeClass = TK_TYPE_POINTER;
    Op.Layout = Vector ? LaneLayout::Scattered : LaneLayout::Whole;
    Op.Lane = Lane;
    Op.recordInPlace(&I);
    Op.Origin = &I;
    Op.At = At;
    Op.After = At != nullptr;
    Out.push_back(Op);
  }
}

} // namespace tracekit
