// Emit.cpp: see Emit.h.
#include "Emit.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace tracekit {

Runtime::Runtime(Module &M) {
  LLVMContext &C = M.getContext();
  Type *Pointer = PointerType::getUnqual(C);
  StateType = StructType::get(Pointer, Pointer);
  State = M.getGlobalVariable("__tk_state");
  if (!State) // weak would let the linker leave it undefined; the stub in every image defines it
    State = new GlobalVariable(M, StateType, false, GlobalValue::ExternalLinkage, nullptr, "__tk_state", nullptr,
                               GlobalValue::InitialExecTLSModel);
  AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
  Flip = M.getOrInsertFunction("__tk_flip", NoUnwind, Type::getVoidTy(C));
  Landing = M.getOrInsertFunction("__tk_landing", NoUnwind, Type::getVoidTy(C), Pointer);
  auto *FlipFunction = cast<Function>(Flip.getCallee());
  FlipFunction->setCallingConv(CallingConv::PreserveMost);
  FlipFunction->addFnAttr(Attribute::Cold);
  for (FunctionCallee Callee : {Flip, Landing}) {
    cast<Function>(Callee.getCallee())->setVisibility(GlobalValue::HiddenVisibility);
    cast<Function>(Callee.getCallee())->setDSOLocal(true);
  }
}

namespace {

/// Writes one function's instrumentation.
class Emitter {
public:
  Emitter(const SegmentedFunction &S, const Runtime &R, GlobalVariable *Ids)
      : S(S), R(R), Ids(Ids), C(S.F->getContext()), NoSanitize(MDNode::get(C, {})),
        Unlikely(MDBuilder(C).createBranchWeights(1, 1u << 20)), Unoptimised(S.F->hasOptNone()) {
    if (DISubprogram *Function = S.F->getSubprogram())
      NoLine = DILocation::get(C, 0, 0, Function);
  }

  void run() {
    if (Unoptimised) {
      BasicBlock &Entry = S.F->getEntryBlock();
      IRBuilder<> B(&Entry, Entry.getFirstNonPHIOrDbgOrAlloca());
      B.SetCurrentDebugLocation(DebugLoc());
      State = B.CreateThreadLocalAddress(R.State);
    }
    for (size_t K = 0; K < S.Segments.size(); ++K)
      segment(S.Segments[K], K);
  }

private:
  void segment(const Segment &Seg, uint64_t Number);
  void checkForRoom(Instruction *Begin);
  void write(const Operation &Op, Instruction *Begin);
  void publish(Instruction *End, uint64_t Number);

  /// Inserts before `Position`, without a source line.
  struct Builder : IRBuilder<> {
    explicit Builder(Instruction *Position) : IRBuilder<>(Position) { SetCurrentDebugLocation(DebugLoc()); }
  };
  /// Marks an instruction as one that other instrumentation leaves alone.
  template <typename InstructionType> InstructionType *ours(InstructionType *I) {
    I->setMetadata(LLVMContext::MD_nosanitize, NoSanitize);
    return I;
  }
  CallInst *call(IRBuilder<> &B, FunctionCallee Callee, ArrayRef<Value *> Arguments) {
    CallInst *Call = B.CreateCall(Callee, Arguments);
    Call->setCallingConv(cast<Function>(Callee.getCallee())->getCallingConv());
    Call->setDebugLoc(NoLine); // calls between functions that have debug information must have a location
    return ours(Call);
  }
  Value *slot(IRBuilder<> &B, Value *From, uint64_t Words) {
    return Words ? B.CreateConstInBoundsGEP1_64(B.getInt64Ty(), From, Words) : From;
  }

  const SegmentedFunction &S;
  const Runtime &R;
  GlobalVariable *Ids;
  LLVMContext &C;
  MDNode *NoSanitize;
  MDNode *Unlikely;
  DebugLoc NoLine;
  // At -O0 each value that lives across basic blocks takes a stack slot of its own: two for each segment would
  // make frames several times larger, and recursive programs overflow the stack.
  const bool Unoptimised;
  // Of the segment at work:
  Value *State = nullptr;
  Value *Position = nullptr;
  uint64_t Written = 0;
};

/// pos = state.pos; if (pos >= state.limit) { __tk_flip(); pos = state.pos; }
void Emitter::checkForRoom(Instruction *Begin) {
  BasicBlock *Head = Begin->getParent();
  BasicBlock *Tail = Head->splitBasicBlock(Begin->getIterator());
  BasicBlock *Full = BasicBlock::Create(C, "tk.full", S.F);
  Head->getTerminator()->eraseFromParent();

  IRBuilder<> B(Head);
  B.SetCurrentDebugLocation(DebugLoc());
  Type *Pointer = B.getPtrTy();
  if (!Unoptimised)
    State = B.CreateThreadLocalAddress(R.State);
  Value *First = ours(B.CreateLoad(Pointer, State, "tk.pos"));
  Value *Limit = ours(B.CreateLoad(Pointer, B.CreateStructGEP(R.StateType, State, 1), "tk.limit"));
  B.CreateCondBr(B.CreateICmpUGE(First, Limit), Full, Tail, Unlikely);

  B.SetInsertPoint(Full);
  call(B, R.Flip, {});
  if (Unoptimised) {
    B.CreateBr(Tail);
    B.SetInsertPoint(Tail, Tail->begin());
    Position = ours(B.CreateLoad(Pointer, State, "tk.pos"));
  } else {
    Value *Second = ours(B.CreateLoad(Pointer, State, "tk.pos"));
    B.CreateBr(Tail);
    B.SetInsertPoint(Tail, Tail->begin());
    PHINode *Merged = B.CreatePHI(Pointer, 2, "tk.pos");
    Merged->addIncoming(First, Head);
    Merged->addIncoming(Second, Full);
    Position = Merged;
  }
  Written = 0;
}

void Emitter::write(const Operation &Op, Instruction *Begin) {
  Instruction *At = !Op.At ? Begin : Op.After ? Op.At->getNextNode() : Op.At;
  Builder B(At);
  for (Value *Word : recordedWords(Op, B))
    ours(B.CreateAlignedStore(Word, slot(B, Position, ++Written), Align(8)));
}

/// *(atomic release) pos = id; state.pos = pos + 1 + words
void Emitter::publish(Instruction *End, uint64_t Number) {
  Builder B(End);
  Constant *Id = ConstantExpr::getGetElementPtr(B.getInt8Ty(), Ids, ArrayRef<Constant *>{B.getInt64(Number)});
  StoreInst *Publish = ours(B.CreateAlignedStore(Id, Position, Align(8)));
  Publish->setAtomic(AtomicOrdering::Release);
  ours(B.CreateStore(slot(B, Position, 1 + Written), State));
}

void Emitter::segment(const Segment &Seg, uint64_t Number) {
  if (Seg.Flags & TK_BLOCK_LANDING) {
    Builder B(Seg.Begin);
    call(B, R.Landing, {S.Frame});
  }
  checkForRoom(Seg.Begin);
  for (const Operation &Op : ArrayRef(S.Ops).slice(Seg.FirstOp, Seg.Ops))
    write(Op, Seg.Begin);
  publish(Seg.End, Number);
}

} // namespace

void emit(const SegmentedFunction &S, const Runtime &R, GlobalVariable *Ids) { Emitter(S, R, Ids).run(); }

} // namespace tracekit
