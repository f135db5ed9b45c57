// PureCalls.cpp: see PureCalls.h.
#include "PureCalls.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace tracekit {

/// The parameter that a value is, as unoptimised code has it: loaded from a variable that holds nothing else.
static const Argument *parameter(const Value *V) {
  auto *Load = dyn_cast<LoadInst>(V);
  auto *Variable = Load ? dyn_cast<AllocaInst>(Load->getPointerOperand()) : nullptr;
  if (!Variable)
    return dyn_cast<Argument>(V);
  const Argument *Held = nullptr;
  for (const User *By : Variable->users()) {
    auto *Store = dyn_cast<StoreInst>(By);
    if (Store && !Held && Store->getPointerOperand() == Variable)
      Held = dyn_cast<Argument>(Store->getValueOperand());
    else if (!isa<LoadInst>(By))
      return nullptr;
  }
  return Held;
}

namespace {

/// A function that is called, and the parameters, by number, that lead to variables of the functions that call it, as
/// far back as the outermost call.
struct Entered {
  const Function *Callee;
  uint64_t Lent;

  bool operator==(const Entered &Other) const { return Callee == Other.Callee && Lent == Other.Lent; }

  bool isOwn(const Value *Pointer) const {
    const Value *Base = getUnderlyingObject(Pointer);
    const Argument *Given = parameter(Base);
    return isa<AllocaInst>(Base) || (Given && Given->getArgNo() < 64 && Lent >> Given->getArgNo() & 1);
  }

  /// Whether an instruction, but for what it calls, changes nothing that outlives the outermost call.
  bool staysInside(const Instruction &I) const {
    if (I.isVolatile() || (I.isAtomic() && !isa<CallBase>(I)))
      return false;
    if (auto *Store = dyn_cast<StoreInst>(&I))
      return isOwn(Store->getPointerOperand());
    if (auto *Moved = dyn_cast<MemIntrinsic>(&I))
      return isOwn(Moved->getRawDest());
    if (auto *Built = dyn_cast<IntrinsicInst>(&I))
      return Built->onlyReadsMemory() || Built->isLifetimeStartOrEnd() || I.isDebugOrPseudoInst();
    return isa<CallBase>(I) || !I.mayWriteToMemory();
  }

  uint64_t lentTo(const CallBase &Call) const {
    uint64_t Bits = 0;
    for (unsigned K = 0; K < std::min(Call.arg_size(), 64u); ++K)
      if (Call.getArgOperand(K)->getType()->isPointerTy() && isOwn(Call.getArgOperand(K)))
        Bits |= uint64_t(1) << K;
    return Bits;
  }
};

} // namespace

static constexpr StringLiteral PureMark = "tracekit-changes-nothing";

static bool isCompared(const Value &V) {
  return any_of(V.users(), [](const User *U) {
    return isa<CmpInst>(U) || (isa<CastInst, UnaryOperator, BinaryOperator>(U) && isCompared(*U));
  });
}

void markPureFunctions(Module &M) {
  SmallPtrSet<const Function *, 16> Seen;
  for (Function &F : M)
    for (Instruction &I : instructions(F)) {
      auto *Call = dyn_cast<CallBase>(&I);
      Function *Callee = Call ? Call->getCalledFunction() : nullptr;
      if (Callee && !Callee->isDeclaration() && isCompared(*Call) && Seen.insert(Callee).second &&
          changesNothing(*Call))
        Callee->addFnAttr(PureMark);
    }
}

void dropPureMarks(Module &M) {
  for (Function &F : M)
    F.removeFnAttr(PureMark);
}

bool isPureCall(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  return Call && (Call->onlyReadsMemory() || (Callee && Callee->hasFnAttribute(PureMark)));
}

bool changesNothing(const CallBase &Call) {
  SmallVector<Entered, 8> Open;
  auto Enter = [&Open](const CallBase &Next, uint64_t Lent) {
    const Function *Callee = Next.getCalledFunction();
    if (!Callee || Callee->isDeclaration() || Callee->isInterposable())
      return Next.onlyReadsMemory();
    if (!is_contained(Open, Entered{Callee, Lent}))
      Open.push_back({Callee, Lent});
    return true;
  };
  if (!Enter(Call, 0))
    return false;
  for (size_t K = 0; K < Open.size(); ++K) {
    Entered In = Open[K];
    for (const Instruction &I : instructions(*In.Callee)) {
      auto *Next = dyn_cast<CallBase>(&I);
      if (!In.staysInside(I) || (Next && !isa<IntrinsicInst>(Next) && !Enter(*Next, In.lentTo(*Next))))
        return false;
    }
  }
  return true;
}

} // namespace tracekit
