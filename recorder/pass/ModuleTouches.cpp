// ModuleTouches.cpp: see ModuleTouches.h.
#include "ModuleTouches.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

using namespace llvm;

namespace tracekit {

static SmallVector<BasicBlock *, 32> blocksOf(Function &F) {
  ReversePostOrderTraversal<Function *> Order(&F);
  return {Order.begin(), Order.end()};
}

void ModuleTouches::summarize(Summary &To, const Touches &Of) {
  SmallSetVector<Function *, 8> Called;
  for (const auto &[BB, Functions] : Of.Calls)
    Called.insert(Functions.begin(), Functions.end());
  To.Calls.assign(Called.begin(), Called.end());
  for (const auto &[BB, Types] : Of.StoresElsewhere)
    To.StoresElsewhere.insert(Types.begin(), Types.end());
  if (!Of.CallsUnknown.empty())
    To.StoresElsewhere.insert(nullptr);
}

ModuleTouches::ModuleTouches(Module &M) {
  for (Function &F : M)
    if (!F.isDeclaration())
      Own[&F] = std::make_unique<Touches>(F);
  for (auto &[F, Of] : Own) {
    summarize(Summaries[F], *Of);
    std::optional<Region> Whole;
    for (auto &[Variable, In] : Of->Of)
      if (auto *G = dyn_cast<GlobalVariable>(Variable)) {
        if (!Whole)
          Whole.emplace(blocksOf(*F), ArrayRef<BasicBlock *>());
        enter(*F, *G, In, effectOf(In, *Whole));
      }
  }
}

void ModuleTouches::enter(Function &F, GlobalVariable &G, const ObjectTouches &In, RegionEffect E) {
  Globals[&F].push_back({&G, E});
  if (E.ReadsFirst)
    ReadFirst.insert(&G);
  if (In.MayBeReached || E.TakesAddress)
    Reached.insert(&G);
}

CalleeEffect ModuleTouches::effectOfCalls(ArrayRef<Function *> Callees) const {
  CalleeEffect Effect;
  SmallSetVector<Function *, 8> Open(Callees.begin(), Callees.end());
  for (size_t K = 0; K < Open.size(); ++K) {
    auto Known = Summaries.find(Open[K]);
    if (Known == Summaries.end())
      continue;
    if (auto Direct = Globals.find(Open[K]); Direct != Globals.end())
      for (const auto &[G, E] : Direct->second) {
        Effect.Touched.insert(G);
        if (E.Writes)
          Effect.Written.insert(G);
        if (E.ReadsFirst)
          Effect.ReadFirst.insert(G);
        if (E.Varies)
          Effect.Varying.insert(G);
      }
    const Summary &Each = Known->second;
    Open.insert(Each.Calls.begin(), Each.Calls.end());
    Effect.StoresElsewhere.insert(Each.StoresElsewhere.begin(), Each.StoresElsewhere.end());
  }
  return Effect;
}

} // namespace tracekit
