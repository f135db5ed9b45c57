// RegistersAhead.cpp: see RegistersAhead.h.
#include "RegistersAhead.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"

using namespace llvm;

namespace tracekit {

RegistersAhead::RegistersAhead(const SegmentedFunction &S) : S(S) {
  for (bool Changed = S.Registers > 0; Changed;) {
    Changed = false;
    for (const BasicBlock *BB : post_order(static_cast<const Function *>(S.F))) {
      auto Known = S.OfBlock.find(BB);
      if (Known == S.OfBlock.end())
        continue;
      BitVector Wanted = from(*BB, Known->second.first);
      auto [Old, New] = Read.try_emplace(BB, Wanted);
      Changed |= New || Old->second != Wanted;
      Old->second = Wanted;
    }
  }
}

BitVector RegistersAhead::from(const BasicBlock &BB, unsigned First) const {
  BitVector Wanted(S.Registers);
  for (const BasicBlock *Next : successors(&BB))
    if (auto Known = Read.find(Next); Known != Read.end())
      Wanted |= Known->second;
  for (unsigned K = S.OfBlock.lookup(&BB).second + 1; K-- > First;)
    for (const Operation &Op : reverse(ArrayRef(S.Ops).slice(S.Segments[K].FirstOp, S.Segments[K].Ops))) {
      if (Op.Defines != TK_NONE)
        Wanted.reset(Op.Defines);
      if (Op.BaseKind == TK_BASE_REGISTER)
        Wanted.set(Op.BaseRow);
      for (const Term &T : Op.Terms)
        if (T.StrideRegister != TK_NONE)
          Wanted.set(T.StrideRegister);
    }
  return Wanted;
}

BitVector RegistersAhead::from(unsigned K) const { return from(*S.Segments[K].Parent, K); }

} // namespace tracekit
