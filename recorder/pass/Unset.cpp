// Unset.cpp: see Unset.h.
#include "Unset.h"

#include "Compat.h"
#include "SourceLoops.h"

using namespace llvm;

namespace tracekit {

/// Whether a variable is declared in a block of the source that lies inside the one in which a loop stands: in the
/// body, if the loop uses it. (What the head of a `for` declares lies in the block in which clang has the `for`
/// itself.)
static bool isDeclaredInBody(const DILocalVariable &V, const DILocation &Start) {
  const DIScope *Around = Start.getScope()->getNonLexicalBlockFileScope();
  for (const DIScope *S = V.getScope(); isa_and_nonnull<DILexicalBlockBase>(S);) {
    const DILocalScope *Next = cast<DILexicalBlockBase>(S)->getScope();
    S = Next ? Next->getNonLexicalBlockFileScope() : nullptr;
    if (S == Around)
      return V.getScope()->getNonLexicalBlockFileScope() != Around;
  }
  return false;
}

/// Whether a loop inside assigns a variable that lives longer than its iterations. The optimiser may make one loop of
/// both, in which the variable is carried.
static bool isAssignedInLoopsInside(const DILocalVariable &V, const ObjectTouches &In, const Loop &L) {
  for (const Loop *Inner : L.getSubLoops()) {
    DebugLoc Start = Inner->getStartLoc();
    bool IsInBody = Start && isDeclaredInBody(V, *Start);
    if (IsInBody ? isAssignedInLoopsInside(V, In, *Inner) : any_of(In.In, [&](const auto &Each) {
          return Inner->contains(Each.first) && any_of(Each.second, [](const Touch &T) { return T.Writes; });
        }))
      return true;
  }
  return false;
}

SmallVector<const DILocalVariable *, 1> unsetVariables(const LoopText &Text) {
  SmallVector<const DILocalVariable *, 1> Found;
  for (auto [Place, Each] : enumerate(Text.T.Of)) {
    auto &[Variable, In] = Each;
    if (!Text.Touched[Place] || !isa<AllocaInst>(Variable) || In.MayBeReached)
      continue;
    const DILocalVariable *V = variableAt(Variable, true);
    if (!V || !isDeclaredInBody(*V, Text.Start) || isAssignedInLoopsInside(*V, In, Text.L))
      continue;
    if (RegionEffect E = Text.effectOn(In); E.ReadsFirst && E.Writes)
      Found.push_back(V);
  }
  return Found;
}

/// The variable that a header has a register for, by what its first debug records say; null if it is not one alone.
static const DILocalVariable *variableOf(const PHINode &Phi) {
  const DILocalVariable *Found = nullptr;
  bool IsOne = true;
  for (Instruction &I : const_cast<BasicBlock &>(*Phi.getParent())) {
    if (isa<PHINode>(I))
      continue;
    forEachAssignment(I, [&](const DILocalVariable *V, const DILocation *, Value *Assigned) {
      if (Assigned == &Phi) {
        IsOne &= !Found || Found == V;
        Found = V;
      }
    });
    if (!I.isDebugOrPseudoInst())
      break;
  }
  return IsOne ? Found : nullptr;
}

bool isUnset(const PHINode &Phi, const Loop &L, const SourceLoop &Source) {
  const DILocalVariable *V = variableOf(Phi);
  if (!V || !is_contained(Source.Unset, V))
    return false;
  const Value *First = &Phi;
  for (const Loop *Around = &L; Around; Around = Around->getParentLoop()) { // a loop around has a phi of it, too
    auto *Carried = dyn_cast<PHINode>(First);
    const BasicBlock *Before = Around->getLoopPredecessor();
    if (!Carried || Carried->getParent() != Around->getHeader() || !Before)
      break;
    First = Carried->getIncomingValueForBlock(Before);
  }
  return isa<UndefValue>(First);
}

} // namespace tracekit
