// LoopText.cpp: see LoopText.h.
#include "LoopText.h"

#include "Compat.h"
#include "Names.h"

using namespace llvm;

namespace tracekit {

LoopText::LoopText(const Loop &L, const DILocation &Start, const Touches &T, const ModuleTouches &Everything,
                   ArrayRef<BasicBlock *> Order)
    : L(L), Start(Start), T(T), Everything(Everything), Touched(T.Of.size()) {
  SmallVector<Function *, 8> Called;
  for (BasicBlock *BB : Order)
    if (L.contains(BB)) {
      Blocks.push_back(BB);
      if (auto Known = T.Calls.find(BB); Known != T.Calls.end())
        Called.append(Known->second.begin(), Known->second.end());
      if (auto Known = T.In.find(BB); Known != T.In.end())
        for (unsigned Place : Known->second)
          Touched.set(Place);
      if (auto Known = T.StoresElsewhere.find(BB); Known != T.StoresElsewhere.end())
        StoresElsewhere.insert(Known->second.begin(), Known->second.end());
      CallsUnknown |= T.CallsUnknown.contains(BB);
    }
  SmallVector<BasicBlock *, 4> Latches;
  L.getLoopLatches(Latches);
  Iteration.emplace(Blocks, Latches);
  Callees = Everything.effectOfCalls(Called);
}

bool LoopText::isAssigned(Value *Pointer) const {
  auto Known = T.Of.find(Pointer);
  auto *G = dyn_cast<GlobalVariable>(Pointer);
  return Known != T.Of.end() && (effectOn(Known->second).Writes || (G && Callees.Written.contains(G)));
}

std::pair<unsigned, unsigned> endOf(const Loop &L, const DILocation &Start) {
  std::pair<unsigned, unsigned> End = {Start.getLine(), Start.getColumn()};
  auto Extend = [&](const DILocation *At) {
    if (At && At->getInlinedAt() == Start.getInlinedAt() && At->getFile() == Start.getFile() &&
        At->getScope()->getSubprogram() == Start.getScope()->getSubprogram())
      End = std::max(End, {At->getLine(), At->getColumn()});
  };
  for (const BasicBlock *BB : L.blocks())
    for (const Instruction &I : *BB)
      if (!I.isDebugOrPseudoInst())
        Extend(I.getDebugLoc().get());
  if (DebugLoc Last = L.getLocRange().getEnd())
    Extend(Last.get());
  return End;
}

const DIVariable *declarationOf(Object Variable) {
  if (auto *G = dyn_cast<GlobalVariable>(Variable)) {
    SmallVector<DIGlobalVariableExpression *, 1> Debug;
    G->getDebugInfo(Debug);
    return Debug.empty() ? nullptr : Debug.front()->getVariable();
  }
  return variableAt(Variable);
}

} // namespace tracekit
