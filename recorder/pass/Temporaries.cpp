// Temporaries.cpp: see Temporaries.h.
#include "Temporaries.h"

#include "Compat.h"

using namespace llvm;

namespace tracekit {

static constexpr char Mark[] = "tracekit.temporary";

SmallVector<Instruction *, 8> usersOf(AllocaInst &Variable) {
  SmallVector<Instruction *, 8> Found, Open = {&Variable};
  while (!Open.empty())
    for (User *By : Open.pop_back_val()->users()) {
      auto *I = cast<Instruction>(By);
      Found.push_back(I);
      if (isa<GetElementPtrInst, BitCastInst>(I))
        Open.push_back(I);
    }
  return Found;
}

static Loop *innermostOfAll(ArrayRef<Instruction *> Users, const LoopInfo &LI) {
  Loop *Common = Users.empty() ? nullptr : LI.getLoopFor(Users.front()->getParent());
  for (Instruction *I : Users)
    while (Common && !Common->contains(I))
      Common = Common->getParentLoop();
  return Common;
}

/// The blocks that are reached without an exception.
static SmallPtrSet<const BasicBlock *, 32> ordinaryBlocks(const Function &F) {
  SmallPtrSet<const BasicBlock *, 32> Seen;
  SmallVector<const BasicBlock *, 16> Open = {&F.getEntryBlock()};
  while (!Open.empty()) {
    const BasicBlock *BB = Open.pop_back_val();
    if (!BB->isLandingPad() && Seen.insert(BB).second)
      Open.append(succ_begin(BB), succ_end(BB));
  }
  return Seen;
}

/// Leaves out what destroys a variable after an exception, which lies outside all loops, if anything else uses it.
static void leaveOutCleaning(SmallVectorImpl<Instruction *> &Users,
                             const SmallPtrSetImpl<const BasicBlock *> &Ordinary) {
  auto IsOrdinary = [&](const Instruction *I) { return Ordinary.contains(I->getParent()); };
  if (any_of(Users, IsOrdinary))
    erase_if(Users, [&](const Instruction *I) { return !IsOrdinary(I); });
}

void markTemporaries(Function &F, const LoopInfo &LI) {
  if (LI.empty())
    return;
  SmallPtrSet<const BasicBlock *, 32> Ordinary = ordinaryBlocks(F);
  for (Instruction &Candidate : F.getEntryBlock()) {
    auto *Variable = dyn_cast<AllocaInst>(&Candidate);
    if (!Variable || !Variable->isStaticAlloca() || !variablesOf(Variable).empty())
      continue;
    SmallVector<Instruction *, 8> Users = usersOf(*Variable);
    leaveOutCleaning(Users, Ordinary);
    Loop *L = innermostOfAll(Users, LI);
    auto Own = find_if(Users, [&](Instruction *I) {
      return L && LI.getLoopFor(I->getParent()) == L && I->getDebugLoc() && I->getDebugLoc().getLine();
    });
    if (Own != Users.end())
      Variable->setMetadata(Mark, (*Own)->getDebugLoc().get());
  }
}

const DILocation *placeOfTemporary(const AllocaInst &Variable) {
  return dyn_cast_or_null<DILocation>(Variable.getMetadata(Mark));
}

} // namespace tracekit
