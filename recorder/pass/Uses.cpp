// Uses.cpp: see Uses.h.
#include "Uses.h"

#include "SimdLoops.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace tracekit {
namespace {

/// Whether the library looks at all bits of this argument: what is printed is decided digit by digit.
bool isPrinted(const CallBase &Call, const Use &Argument) {
  static const StringSet<> Formats = {"printf",         "fprintf",      "sprintf",       "snprintf",
                                      "dprintf",        "__printf_chk", "__fprintf_chk", "__sprintf_chk",
                                      "__snprintf_chk", "__dprintf_chk"};
  const Function *Callee = Call.getCalledFunction();
  if (!Callee || !Callee->isDeclaration() || !Call.isArgOperand(&Argument) || Argument->getType()->isPointerTy())
    return false;
  unsigned Number = Call.getArgOperandNo(&Argument);
  if (Formats.contains(Callee->getName()))
    return Number >= Call.getFunctionType()->getNumParams();
  StringRef Name = Callee->getName(); // std::ostream::operator<<, std::ostream::_M_insert
  return Number == 1 && (Name.substr(0, 7) == "_ZNSols" || Name.substr(0, 15) == "_ZNSo9_M_insert");
}

/// Whether what the program does next follows from the operand: a branch, an access's address, a call's target.
bool isDecision(const Use &Operand) {
  auto *I = cast<Instruction>(Operand.getUser());
  if (I->isTerminator() && !isa<InvokeInst, ReturnInst>(I))
    return isa<BranchInst, SwitchInst, IndirectBrInst>(I);
  if (const Value *Address = getLoadStorePointerOperand(I))
    return Address == Operand.get() && !(isa<StoreInst>(I) && Operand.getOperandNo() == 0);
  if (auto *Call = dyn_cast<CallBase>(I))
    return Call->isCallee(&Operand) || isPrinted(*Call, Operand);
  return false;
}

/// Whether nothing is known of the result if nothing is known of this operand, whatever the other one is.
bool handsOn(const Use &Operand) {
  auto *I = cast<Instruction>(Operand.getUser());
  auto *Other = dyn_cast<ConstantInt>(I->getOperand(I->getNumOperands() - 1));
  switch (I->getOpcode()) {
  case Instruction::Shl:
  case Instruction::LShr:
  case Instruction::AShr:
    return Operand.getOperandNo() == 0 && Other;
  case Instruction::And:
    return Other && !Other->isZero();
  case Instruction::Or:
    return Other && !Other->isMinusOne();
  case Instruction::Mul:
    return !Other || !Other->isZero();
  default:
    return !I->getType()->isVectorTy() &&
           (I->isCast() || I->isBinaryOp() || isa<CmpInst, GetElementPtrInst, FreezeInst, UnaryOperator>(I));
  }
}

/// The first instruction from `I` on after which control may not go on to the next one of its block.
const Instruction *lastSure(const Instruction &I) {
  const Instruction *Last = &I;
  while (!Last->isTerminator() && isGuaranteedToTransferExecutionToSuccessor(Last))
    Last = Last->getNextNode();
  return Last;
}

class Follower {
public:
  explicit Follower(const LoopInfo &LI) : LI(LI) {}

  /// Whether, each time it runs, something is decided by all of its value or by what is made of that.
  bool decides(LoadInst &Load) {
    Type *T = Load.getType();
    if (!T->isIntegerTy() && !T->isFloatingPointTy() && !T->isPointerTy())
      return false;
    return follow({&Load}, *lastSure(Load), true);
  }

private:
  /// Follows values inside one block up to `Last`, and, if `IntoSums`, what a loop adds up into the block behind it.
  bool follow(SmallVector<Value *, 8> Open, const Instruction &Last, bool IntoSums) {
    SmallPtrSet<Value *, 16> Seen(Open.begin(), Open.end());
    while (!Open.empty()) {
      Value *V = Open.pop_back_val();
      for (const Use &Operand : V->uses()) {
        auto *I = dyn_cast<Instruction>(Operand.getUser());
        if (!I || I->getParent() != Last.getParent() || isa<PHINode>(I) || Last.comesBefore(I))
          continue;
        if (isDecision(Operand))
          return true;
        if (!handsOn(Operand) || !Seen.insert(I).second)
          continue;
        Open.push_back(I);
        if (IntoSums && decidesAsSum(*I))
          return true;
      }
    }
    return false;
  }

  /// Whether `Sum` is what an iteration adds to a sum, and the block behind the loop decides something by that.
  bool decidesAsSum(Instruction &Sum) {
    const Loop *L = LI.getLoopFor(Sum.getParent());
    BasicBlock *Behind = L ? L->getUniqueExitBlock() : nullptr;
    BasicBlock *Latch = L ? L->getLoopLatch() : nullptr;
    if (!Behind || !Latch || !Sum.isBinaryOp())
      return false;
    PHINode *Before = nullptr;
    for (Value *Operand : Sum.operands())
      if (auto *Phi = dyn_cast<PHINode>(Operand); Phi && Phi->getParent() == L->getHeader())
        Before = Phi->getIncomingValueForBlock(Latch) == &Sum ? Phi : Before;
    if (!Before || !alwaysGoesOn(*L))
      return false;
    SmallVector<Value *, 8> After;
    for (PHINode &Phi : Behind->phis())
      if (takes(Phi, *L, Sum, *Before))
        After.push_back(&Phi);
    if (Behind->getSinglePredecessor()) // then they are used there as they are
      After.append({&Sum, Before});
    return !After.empty() && follow(After, *lastSure(Behind->front()), false);
  }

  static bool takes(const PHINode &Phi, const Loop &L, const Value &Sum, const Value &Before) {
    for (unsigned K = 0; K < Phi.getNumIncomingValues(); ++K) {
      const Value *V = Phi.getIncomingValue(K);
      if (L.contains(Phi.getIncomingBlock(K)) && V != &Sum && V != &Before)
        return false;
    }
    return true;
  }

  static bool alwaysGoesOn(const Loop &L) {
    for (const BasicBlock *BB : L.blocks())
      for (const Instruction &I : *BB)
        if (!I.isTerminator() && !isGuaranteedToTransferExecutionToSuccessor(&I))
          return false;
    return true;
  }

  const LoopInfo &LI;
};

} // namespace

void describeUses(const SegmentedFunction &S, const FunctionRows &Rows, const LoopInfo &LI, Unit &U) {
  Follower Follow(LI);
  for (size_t K = 0; K < S.Ops.size(); ++K) {
    const Operation &Op = S.Ops[K];
    tk_row_ops &R = U.Ops[Rows.FirstOp + K];
    if (Op.Kind == TK_OP_LOAD && isa_and_nonnull<LoadInst>(Op.Origin) && Follow.decides(*cast<LoadInst>(Op.Origin)))
      R.use |= TK_OPUSE_DECIDES;
    if (Op.Kind == TK_OP_STACK_ALLOC && isa_and_nonnull<AllocaInst>(Op.Address))
      R.use |= TK_OPUSE_EMPTY; // an argument that was passed by value is not
    if (Op.Kind <= TK_OP_SET && Op.Origin && Op.Address && isOfLane(*Op.Origin, Op.Address, LI))
      R.use |= TK_OPUSE_OF_LANE;
  }
}

} // namespace tracekit
