// Touches.cpp: see Touches.h.
#include "Touches.h"

#include "Compat.h"
#include "Lending.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace tracekit {

/// Variables with more bytes are looked at as if all offsets varied.
static constexpr uint64_t LargestTracked = 4096;

namespace {

struct Place {
  Object Of = nullptr;
  APInt Offset;
  bool Varies = false;
};

} // namespace

static bool isVariable(const Value *V) {
  auto *A = dyn_cast<AllocaInst>(V);
  return A ? A->isStaticAlloca() : isa<GlobalVariable>(V) && !cast<GlobalVariable>(V)->isConstant();
}

static Place placeOf(Value *Pointer, const DataLayout &DL) {
  Place P;
  P.Offset = APInt(DL.getIndexTypeSizeInBits(Pointer->getType()), 0);
  for (;;) {
    if (auto *Element = dyn_cast<GEPOperator>(Pointer)) {
      APInt Offset(P.Offset.getBitWidth(), 0);
      if (Element->accumulateConstantOffset(DL, Offset))
        P.Offset += Offset;
      else
        P.Varies = true;
      Pointer = Element->getPointerOperand();
    } else if (auto *Cast = dyn_cast<BitCastOperator>(Pointer)) {
      Pointer = Cast->getOperand(0);
    } else if (auto *Local = dyn_cast<IntrinsicInst>(Pointer);
               Local && Local->getIntrinsicID() == Intrinsic::threadlocal_address) {
      Pointer = Local->getArgOperand(0);
    } else {
      break;
    }
  }
  if (isVariable(Pointer))
    P.Of = Pointer;
  return P;
}

static uint64_t sizeOf(const Value *Variable, const DataLayout &DL) {
  if (auto *A = dyn_cast<AllocaInst>(Variable)) {
    auto *Count = dyn_cast<ConstantInt>(A->getArraySize());
    return DL.getTypeAllocSize(A->getAllocatedType()) * (Count ? Count->getZExtValue() : 1);
  }
  auto *G = cast<GlobalVariable>(Variable);
  return G->getValueType()->isSized() ? uint64_t(DL.getTypeAllocSize(G->getValueType())) : 0;
}

Touches::Touches(Function &F) : DL(F.getParent()->getDataLayout()) {
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (!I.isDebugOrPseudoInst())
        look(I);
}

void Touches::look(Instruction &I) {
  if (auto *Load = dyn_cast<LoadInst>(&I)) {
    access(I, Load->getPointerOperand(), DL.getTypeStoreSize(Load->getType()), true, false, Load->getType());
  } else if (auto *Store = dyn_cast<StoreInst>(&I)) {
    Type *Stored = Store->getValueOperand()->getType();
    access(I, Store->getPointerOperand(), DL.getTypeStoreSize(Stored), false, true, Stored);
    escape(Store->getValueOperand(), loanOf(*Store).IsStored);
  } else if (auto *Update = dyn_cast<AtomicRMWInst>(&I)) {
    access(I, Update->getPointerOperand(), DL.getTypeStoreSize(Update->getType()), true, true, Update->getType());
  } else if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I)) {
    Type *Stored = Exchange->getNewValOperand()->getType();
    access(I, Exchange->getPointerOperand(), DL.getTypeStoreSize(Stored), true, true, Stored);
  } else if (auto *Call = dyn_cast<CallBase>(&I)) {
    lookAtCall(*Call);
  } else if (!isa<GetElementPtrInst, BitCastInst, CmpInst>(I)) {
    for (Value *Used : I.operands())
      escape(Used);
  }
}

void Touches::lookAtCall(CallBase &Call) {
  if (auto *Moved = dyn_cast<MemIntrinsic>(&Call)) {
    auto *Length = dyn_cast<ConstantInt>(Moved->getLength());
    uint64_t Size = Length ? Length->getZExtValue() : 0;
    access(Call, Moved->getDest(), Size, false, true, nullptr);
    if (auto *Copied = dyn_cast<MemTransferInst>(Moved))
      access(Call, Copied->getSource(), Size, true, false, nullptr);
    return;
  }
  if (isa<IntrinsicInst>(Call) && (Call.doesNotAccessMemory() || cast<IntrinsicInst>(Call).isLifetimeStartOrEnd()))
    return;
  Function *Callee = Call.getCalledFunction();
  CallsSomething.insert(Call.getParent());
  if (!Callee)
    CallsUnknown.insert(Call.getParent());
  else
    Calls[Call.getParent()].push_back(Callee);
  for (unsigned K = 0; K < Call.arg_size(); ++K) {
    Value *Given = Call.getArgOperand(K);
    if (!Given->getType()->isPointerTy())
      continue;
    Place P = placeOf(Given, DL);
    if (!P.Of)
      continue;
    ObjectTouches &Variable = Of[P.Of];
    Variable.Size = sizeOf(P.Of, DL);
    if (Call.paramHasAttr(K, Attribute::StructRet) && !P.Varies && P.Offset.isZero()) {
      Variable.In[Call.getParent()].push_back({0, Variable.Size, false, false, true, false, Call.getDebugLoc().get()});
      continue;
    }
    bool ByValue = Call.isByValArgument(K);
    Loan Of = ByValue ? Loan() : loanOf(Call, K);
    Variable.In[Call.getParent()].push_back(
        {0, Variable.Size, !ByValue, true, Of.IsStored, !ByValue, Call.getDebugLoc().get()});
    bool MayBeStored = Of.IsStored && (!Callee || !Callee->isDeclaration());
    Variable.MayBeReached |= MayBeStored;
    Variable.MayBeStored |= MayBeStored && (Of.IsKept || isa<GlobalVariable>(P.Of));
    Variable.IsKept |= Of.IsKept;
  }
}

/// Whether a store of this type, null if it is not known, changes no variable of another: characters and what is made
/// of several values may.
static bool isOfOneType(const Type *As) {
  return As && As->isSingleValueType() && !As->isVectorTy() && !As->isIntegerTy(8);
}

/// `As` is the type that the access has, null if any type will do.
void Touches::access(Instruction &I, Value *Pointer, uint64_t Size, bool Reads, bool Writes, Type *As) {
  Place P = placeOf(Pointer, DL);
  if (!P.Of) {
    if (Writes)
      StoresElsewhere[I.getParent()].insert(isOfOneType(As) ? As : nullptr);
    return;
  }
  ObjectTouches &Variable = Of[P.Of];
  Variable.Size = sizeOf(P.Of, DL);
  uint64_t Begin = P.Offset.getZExtValue();
  bool Varies = P.Varies || !Size || Begin > Variable.Size || Size > Variable.Size - Begin;
  Variable.In[I.getParent()].push_back(
      {Varies ? 0 : Begin, Varies ? Variable.Size : Begin + Size, Varies, Reads, Writes, false, I.getDebugLoc().get()});
}

/// `V`, if it is a variable's address, goes where it is not followed, or where nothing but reads is done with it.
void Touches::escape(Value *V, bool MayBeStored) {
  if (!V->getType()->isPointerTy())
    return;
  if (Place P = placeOf(V, DL); P.Of) {
    ObjectTouches &Variable = Of[P.Of];
    Variable.Size = sizeOf(P.Of, DL);
    Variable.MayBeReached = Variable.IsKept = true;
    Variable.MayBeStored |= MayBeStored;
  }
}

bool Touches::mayReach(Object Variable, const BasicBlock *BB) const {
  auto Known = StoresElsewhere.find(BB);
  return CallsUnknown.contains(BB) || (Known != StoresElsewhere.end() && mayChange(Variable, Known->second));
}

/// Whether a variable of a type, or a part of it, may hold something of one of these types. What lies in a union, or in
/// an array of characters, may be of any.
static bool mayHold(Type *Declared, const StoredTypes &Types) {
  if (auto *Array = dyn_cast<ArrayType>(Declared))
    return Array->getElementType()->isIntegerTy(8) || mayHold(Array->getElementType(), Types);
  auto *Structure = dyn_cast<StructType>(Declared);
  if (!Structure)
    return !Declared->isSingleValueType() || Declared->isVectorTy() || Types.contains(Declared);
  if (Structure->isOpaque() || (Structure->hasName() && startsWith(Structure->getName(), "union.")))
    return true;
  return any_of(Structure->elements(), [&](Type *Each) { return mayHold(Each, Types); });
}

/// A store of one type does not change a variable of another, but for characters.
bool mayChange(Object Variable, const StoredTypes &Types) {
  if (Types.empty())
    return false;
  auto *A = dyn_cast<AllocaInst>(Variable);
  return Types.contains(nullptr) ||
         mayHold(A ? A->getAllocatedType() : cast<GlobalVariable>(Variable)->getValueType(), Types);
}

namespace {

/// Which bytes are written at the end of a block: those at its beginning, and those that it writes.
class Written {
public:
  Written(const ObjectTouches &Variable, ArrayRef<BasicBlock *> Blocks)
      : Variable(Variable), Bytes(Variable.Size <= LargestTracked ? Variable.Size : 0), Blocks(Blocks) {
    for (BasicBlock *BB : Blocks)
      After[BB] = BitVector(Bytes, true);
    bool Changes = true;
    while (Changes) {
      Changes = false;
      for (BasicBlock *BB : Blocks) {
        BitVector Now = before(BB);
        for (const Touch &T : touches(BB))
          write(Now, T);
        Changes |= Now != After[BB];
        After[BB] = std::move(Now);
      }
    }
  }

  BitVector before(BasicBlock *BB) const {
    if (BB == Blocks.front())
      return BitVector(Bytes);
    BitVector All(Bytes, true);
    for (BasicBlock *Before : predecessors(BB))
      if (auto Known = After.find(Before); Known != After.end())
        All &= Known->second;
    return All;
  }

  bool all(BasicBlock *BB) const { return Bytes && After.lookup(BB).all(); }

  ArrayRef<Touch> touches(const BasicBlock *BB) const {
    auto Known = Variable.In.find(BB);
    return Known == Variable.In.end() ? ArrayRef<Touch>() : ArrayRef<Touch>(Known->second);
  }

  void write(BitVector &Now, const Touch &T) const {
    if (Bytes && T.Writes && !T.Varies)
      Now.set(T.Begin, T.End);
  }

  bool covers(const BitVector &Now, const Touch &T) const {
    return Bytes && (T.Begin == T.End || Now.find_first_unset_in(T.Begin, T.End) == -1);
  }

private:
  const ObjectTouches &Variable;
  uint64_t Bytes; // 0: not tracked
  ArrayRef<BasicBlock *> Blocks;
  DenseMap<const BasicBlock *, BitVector> After;
};

} // namespace

RegionEffect effectOf(const ObjectTouches &Variable, ArrayRef<BasicBlock *> Blocks, ArrayRef<BasicBlock *> Ends) {
  RegionEffect E;
  Written Known(Variable, Blocks);
  for (BasicBlock *BB : Blocks) {
    BitVector Now = Known.before(BB);
    for (const Touch &T : Known.touches(BB)) {
      E.Writes |= T.Writes, E.TakesAddress |= T.TakesAddress;
      E.Varies |= T.Varies && !T.TakesAddress;
      E.ReadsFirst |= T.Reads && !Known.covers(Now, T);
      Known.write(Now, T);
    }
  }
  E.WritesAlways = all_of(Ends, [&](BasicBlock *BB) { return Known.all(BB); });
  return E;
}

} // namespace tracekit
