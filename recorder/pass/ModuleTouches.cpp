// ModuleTouches.cpp: see ModuleTouches.h.
#include "ModuleTouches.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"

using namespace llvm;

namespace tracekit {

ModuleTouches::ModuleTouches(Module &M) {
  for (Function &F : M)
    if (!F.isDeclaration())
      Own[&F] = std::make_unique<Touches>(F);
  for (auto &[F, Of] : Own)
    for (auto &[Variable, In] : Of->Of)
      if (auto *G = dyn_cast<GlobalVariable>(Variable))
        enter(*F, *G, In);
}

void ModuleTouches::enter(Function &F, GlobalVariable &G, const ObjectTouches &In) {
  SmallVector<BasicBlock *, 32> Blocks;
  for (BasicBlock *BB : ReversePostOrderTraversal<Function *>(&F))
    Blocks.push_back(BB);
  RegionEffect E = effectOf(In, Blocks, {});
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
    auto Known = Own.find(Open[K]);
    if (Known == Own.end())
      continue;
    if (auto Direct = Globals.find(Open[K]); Direct != Globals.end())
      for (const auto &[G, E] : Direct->second) {
        Effect.Touched.insert(G);
        if (E.Writes)
          Effect.Written.insert(G);
        if (E.ReadsFirst)
          Effect.ReadFirst.insert(G);
      }
    for (const auto &[BB, Called] : Known->second->Calls)
      Open.insert(Called.begin(), Called.end());
    for (const auto &[BB, Types] : Known->second->StoresElsewhere)
      Effect.StoresElsewhere.insert(Types.begin(), Types.end());
    if (!Known->second->CallsUnknown.empty())
      Effect.StoresElsewhere.insert(nullptr);
  }
  return Effect;
}

} // namespace tracekit
