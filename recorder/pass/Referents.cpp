// Referents.cpp: see Referents.h.
#include "Referents.h"

#include "Compat.h"
#include "SourceTypes.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace tracekit {

constexpr unsigned DeepestReferent = 32;

static bool isDeclaredPointer(const DIType *T) {
  unsigned Tag = T->getTag();
  return Tag == dwarf::DW_TAG_pointer_type || Tag == dwarf::DW_TAG_reference_type;
}

/// The element of an array, or of arrays of arrays; any other type is its own.
static const DIType *elementOfArrays(const DIType *T) {
  T = plainType(T);
  while (auto *Array = dyn_cast_or_null<DICompositeType>(T)) {
    if (Array->getTag() != dwarf::DW_TAG_array_type)
      break;
    T = plainType(Array->getBaseType());
  }
  return T;
}

/// What the pointer leads to that lies in a type at an offset in bits; null if there is none.
static const DIType *pointeeAt(const DIType *T, uint64_t Bits, unsigned Depth) {
  T = elementOfArrays(T);
  if (!T || Depth > DeepestReferent)
    return nullptr;
  if (auto *Derived = dyn_cast<DIDerivedType>(T))
    return isDeclaredPointer(T) && Bits % 64 == 0 ? Derived->getBaseType() : nullptr;
  auto *Composite = dyn_cast<DICompositeType>(T);
  if (!Composite)
    return nullptr;
  if (uint64_t Size = T->getSizeInBits())
    Bits %= Size;
  for (const DINode *Each : Composite->getElements()) {
    const DIType *Found = nullptr;
    if (auto *Variants = dyn_cast<DICompositeType>(Each)) { // of an enumeration in Rust
      Found = pointeeAt(Variants, Bits, Depth + 1);
    } else if (auto *Member = dyn_cast<DIDerivedType>(Each)) {
      uint64_t Start = Member->getOffsetInBits();
      if (!Member->isStaticMember() && Start <= Bits && Bits < Start + Member->getSizeInBits())
        Found = pointeeAt(Member->getBaseType(), Bits - Start, Depth + 1);
    }
    if (Found)
      return Found;
  }
  return nullptr;
}

Referent Referents::find(Value *V, unsigned Depth) {
  V = V->stripPointerCasts();
  if (Depth > DeepestReferent || isa<ConstantData>(V)) // nothing is behind null, which the whole module shares
    return {};
  auto [Entry, New] = Known.try_emplace(V);
  if (!New)
    return Entry->second;
  Referent Found = compute(V, Depth + 1);
  return Known[V] = Found;
}

Referent Referents::compute(Value *V, unsigned Depth) {
  if (const DILocalVariable *Variable = variableAt(V, /*Whole=*/true))
    return {Variable->getType(), 0};
  Referent Found;
  if (auto *Part = dyn_cast<GEPOperator>(V)) {
    Found = moved(*Part, Depth);
  } else if (auto *Load = dyn_cast<LoadInst>(V)) {
    Found = {loadedFrom(Load->getPointerOperand(), Depth), 0};
  } else if (auto *Phi = dyn_cast<PHINode>(V)) {
    for (Value *Each : Phi->incoming_values())
      if (!Found.Type)
        Found = find(Each, Depth);
  } else if (auto *Choice = dyn_cast<SelectInst>(V)) {
    Found = find(Choice->getTrueValue(), Depth);
    if (!Found.Type)
      Found = find(Choice->getFalseValue(), Depth);
  } else if (isa<CallBase>(V)) {
    Found = returned(*V, 0);
  } else if (auto *Part = dyn_cast<ExtractValueInst>(V); Part && Part->getNumIndices() == 1) {
    if (auto *Of = dyn_cast<StructType>(Part->getAggregateOperand()->getType()))
      Found = returned(*Part->getAggregateOperand(), DL.getStructLayout(Of)->getElementOffset(*Part->idx_begin()));
  }
  if (Found.Type)
    return Found;
  for (User *U : V->users())
    if (auto *Store = dyn_cast<StoreInst>(U); Store && Store->getValueOperand() == V)
      if (const DIType *T = loadedFrom(Store->getPointerOperand(), Depth))
        return {T, 0};
  return {};
}

/// An element of an array, or a part of what the pointer leads to.
Referent Referents::moved(GEPOperator &By, unsigned Depth) {
  unsigned Width = DL.getIndexTypeSizeInBits(By.getType());
  OffsetSteps Steps;
  APInt Constant(Width, 0);
  Referent Base = find(By.getPointerOperand(), Depth);
  const DIType *Element = elementOfArrays(Base.Type);
  if (!Element)
    return {};
  uint64_t Size = Element->getSizeInBits() / 8;
  if (!Size || !By.collectOffset(DL, Width, Steps, Constant))
    return {};
  for (const auto &[Index, Step] : Steps)
    if (Step.getZExtValue() % Size)
      return {};
  int64_t At = (int64_t(Base.Offset) + Constant.getSExtValue()) % int64_t(Size);
  return {Element, uint64_t(At < 0 ? At + int64_t(Size) : At)};
}

/// What a pointer leads to that a call returns at an offset of its result.
Referent Referents::returned(const Value &V, uint64_t Offset) const {
  auto *Call = dyn_cast<CallBase>(&V);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  const DISubprogram *Of = Callee ? Callee->getSubprogram() : nullptr;
  if (!Of || !Of->getType() || Of->getType()->getTypeArray().size() == 0)
    return {};
  const DIType *Result = Of->getType()->getTypeArray()[0];
  return {Result ? pointeeAt(Result, 8 * Offset, 0) : nullptr, 0};
}

/// What the pointer leads to that lies at an address.
const DIType *Referents::loadedFrom(Value *Address, unsigned Depth) {
  Referent At = find(Address, Depth);
  return At.Type ? pointeeAt(At.Type, 8 * At.Offset, 0) : nullptr;
}

} // namespace tracekit
