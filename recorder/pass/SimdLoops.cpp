// SimdLoops.cpp: see SimdLoops.h.
//
// Clang marks the accesses of a loop of `omp simd` as parallel. With `safelen` it only says how wide the vectors may
// be, as it does for `#pragma clang loop`; then the counter that OpenMP makes for its loops tells the two apart.
#include "SimdLoops.h"

#include "Compat.h"
#include "Unit.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace tracekit {

static constexpr unsigned MostLanes = 0xFFFF;

/// Whether the loop counts by a variable that clang makes for loops of OpenMP: one that the block of the directive
/// declares.
static bool countsForOpenMP(const Loop &L) {
  DebugLoc Start = L.getStartLoc();
  auto IsCounter = [&](const DILocalVariable *V) {
    return Start && V->getScope() == Start.getScope() && V->getName() == ".omp.iv";
  };
  bool Found = false;
  for (Instruction &I : instructions(L.getHeader()->getParent())) {
    if (isa<AllocaInst>(I))
      Found |= any_of(variablesOf(&I), IsCounter);
    forEachAssignment(I, [&](const DILocalVariable *V, const DILocation *, Value *) { Found |= IsCounter(V); });
  }
  return Found;
}

uint32_t simdFlags(const Loop &L) {
  MDNode *Said = L.getLoopID();
  if (!Said || !getBooleanLoopAttribute(&L, "llvm.loop.vectorize.enable"))
    return 0;
  if (findOptionMDForLoopID(Said, "llvm.loop.parallel_accesses"))
    return TK_LOOP_SIMD;
  std::optional<int> Width = getOptionalIntLoopAttribute(&L, "llvm.loop.vectorize.width");
  if (!Width || *Width < 2 || !countsForOpenMP(L))
    return 0;
  return TK_LOOP_SIMD | std::min<uint32_t>(*Width, MostLanes) << 16;
}

/// Whether `Inner` lies in `Outer`, and is not the same.
static bool isInside(const DILocalScope *Inner, const DILocalScope *Outer) {
  while (auto *Block = dyn_cast_or_null<DILexicalBlockBase>(Inner)) {
    Inner = Block->getScope();
    if (Inner == Outer)
      return true;
  }
  return false;
}

bool isOfLane(const Instruction &I, const Value *Address, const LoopInfo &LI) {
  const Loop *L = LI.getLoopFor(I.getParent());
  while (L && !simdFlags(*L))
    L = L->getParentLoop();
  auto *Variable = L ? dyn_cast<AllocaInst>(getUnderlyingObject(Address)) : nullptr;
  if (!Variable)
    return false;
  DebugLoc Start = L->getStartLoc();
  const DILocalScope *Around = Start ? cast<DILocalScope>(Start.getScope()) : nullptr;
  // What OpenMP copies for each lane is declared in the block of the directive, as what the body declares is below it.
  return none_of(variablesOf(const_cast<AllocaInst *>(Variable)),
                 [&](const DILocalVariable *V) { return Around && isInside(Around, V->getScope()); });
}

} // namespace tracekit
