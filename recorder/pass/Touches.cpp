// Touches.cpp: see Touches.h.
#include "Touches.h"

#include "Compat.h"
#include "Lending.h"
#include "ThreadPrivate.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
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

bool isOfThread(const Instruction &I) {
  auto *Call = dyn_cast<CallBase>(&I);
  const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
  if (Callee && (Callee->getIntrinsicID() == Intrinsic::threadlocal_address || Callee->getName().starts_with("_ZTW")))
    return true;
  return any_of(I.operands(), [](const Use &Operand) {
    auto *Known = isa<Constant>(Operand) && Operand->getType()->isPointerTy() ? getUnderlyingObject(Operand) : nullptr;
    return isa_and_nonnull<GlobalVariable>(Known) && isPerThread(*cast<GlobalVariable>(Known));
  });
}

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
  for (auto [Place, Each] : enumerate(Of))
    for (const auto &[BB, Touches] : Each.second.In)
      In[BB].push_back(Place);
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

Region::Region(ArrayRef<BasicBlock *> Blocks, ArrayRef<BasicBlock *> Ending) {
  Numbers.reserve(Blocks.size());
  for (auto [Number, BB] : enumerate(Blocks))
    Numbers[BB] = Number;
  for (BasicBlock *BB : Blocks) {
    First.push_back(Before.size());
    for (BasicBlock *Predecessor : predecessors(BB))
      if (const unsigned *Number = find(Predecessor))
        Before.push_back(*Number);
  }
  First.push_back(Before.size());
  for (BasicBlock *BB : Ending)
    Ends.push_back(*find(BB));
}

namespace {

/// Some bytes of a variable, a bit for each.
class Bytes {
public:
  explicit Bytes(MutableArrayRef<uint64_t> Words) : Words(Words) {}

  void set(uint64_t Begin, uint64_t End) {
    for (; Begin < End; Begin = nextWord(Begin))
      Words[Begin / 64] |= maskOf(Begin, End);
  }

  bool have(uint64_t Begin, uint64_t End) const {
    for (; Begin < End; Begin = nextWord(Begin))
      if (maskOf(Begin, End) & ~Words[Begin / 64])
        return false;
    return true;
  }

private:
  static uint64_t nextWord(uint64_t Bit) { return (Bit | 63) + 1; }
  /// Of the word of the bit `Begin` those from there on, before `End`.
  static uint64_t maskOf(uint64_t Begin, uint64_t End) {
    uint64_t Last = std::min(End, nextWord(Begin)) - 1;
    return (~uint64_t(0) << (Begin % 64)) & (~uint64_t(0) >> (63 - Last % 64));
  }

  MutableArrayRef<uint64_t> Words;
};

/// Which bytes are written at the end of each block of a region: those at its beginning, and those that it writes.
class Written {
public:
  Written(const ObjectTouches &Variable, const Region &In)
      : Size(Variable.Size <= LargestTracked ? Variable.Size : 0), In(In), Length((Size + 63) / 64) {
    std::vector<uint64_t> Here;
    for (const auto &[BB, Touches] : Variable.In)
      if (const unsigned *Number = Size ? In.find(BB) : nullptr)
        for (const Touch &T : Touches)
          if (T.Writes && !T.Varies) {
            Here.resize(In.size() * Length);
            Bytes(row(Here, *Number)).set(T.Begin, T.End);
          }
    if (!Here.empty())
      propagate(Here);
  }

  /// Nothing is known to be written where a pass enters the region.
  SmallVector<uint64_t, 4> before(unsigned Block) const {
    SmallVector<uint64_t, 4> All(Length, Block && !After.empty() ? ~uint64_t(0) : 0);
    if (Block && !After.empty())
      for (unsigned Predecessor : In.before(Block))
        for (size_t K = 0; K < Length; ++K)
          All[K] &= After[Predecessor * Length + K];
    return All;
  }

  bool all(unsigned Block) { return !After.empty() && Bytes(row(After, Block)).have(0, Size); }

  void write(SmallVectorImpl<uint64_t> &Now, const Touch &T) const {
    if (Size && T.Writes && !T.Varies)
      Bytes(Now).set(T.Begin, T.End);
  }

  bool covers(SmallVectorImpl<uint64_t> &Now, const Touch &T) const { return Size && Bytes(Now).have(T.Begin, T.End); }

private:
  MutableArrayRef<uint64_t> row(std::vector<uint64_t> &Rows, unsigned Block) const {
    return MutableArrayRef(Rows).slice(Block * Length, Length);
  }

  void propagate(const std::vector<uint64_t> &Here) {
    After.assign(Here.size(), ~uint64_t(0));
    for (bool Changes = true; Changes;) {
      Changes = false;
      for (unsigned Block = 0; Block < In.size(); ++Block)
        for (size_t K = 0; K < Length; ++K) {
          uint64_t Now = Block ? ~uint64_t(0) : 0;
          for (unsigned Predecessor : Block ? In.before(Block) : ArrayRef<unsigned>())
            Now &= After[Predecessor * Length + K];
          Now |= Here[Block * Length + K];
          Changes |= Now != After[Block * Length + K];
          After[Block * Length + K] = Now;
        }
    }
  }

  uint64_t Size; // 0: not tracked
  const Region &In;
  size_t Length;               // words for a block
  std::vector<uint64_t> After; // for each block; empty: nothing is written anywhere
};

} // namespace

RegionEffect effectOf(const ObjectTouches &Variable, const Region &In) {
  RegionEffect E;
  Written Known(Variable, In);
  for (const auto &[BB, Touches] : Variable.In) {
    const unsigned *Number = In.find(BB);
    if (!Number)
      continue;
    SmallVector<uint64_t, 4> Now = Known.before(*Number);
    for (const Touch &T : Touches) {
      E.Writes |= T.Writes, E.TakesAddress |= T.TakesAddress;
      E.Varies |= T.Varies && !T.TakesAddress;
      E.ReadsFirst |= T.Reads && !Known.covers(Now, T);
      Known.write(Now, T);
    }
  }
  E.WritesAlways = all_of(In.Ends, [&](unsigned Block) { return Known.all(Block); });
  return E;
}

} // namespace tracekit
