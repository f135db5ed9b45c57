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

void markTemporaries(Function &F, const LoopInfo &LI) {
  for (Instruction &Candidate : F.getEntryBlock()) {
    auto *Variable = dyn_cast<AllocaInst>(&Candidate);
    if (!Variable || !Variable->isStaticAlloca() || !variablesOf(Variable).empty())
      continue;
    SmallVector<Instruction *, 8> Users = usersOf(*Variable);
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
