// Doors.cpp: see Twins.h. How control goes over from the clean body into the instrumented one.
//
// A door of the clean body stores what is alive there in memory, and calls the twin with its address. The twin's hall
// loads it (DoorLives.cpp), fills in the activation as the twin itself would have by then, tells the runtime, and goes
// on behind the door.
#include "Compat.h"
#include "Descriptors.h"
#include "Twins.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace tracekit {

static constexpr unsigned ManyDoors = 16;

/// In bytes, of what doors of a function that calls setjmp hand over: whether the twin is under way, else 0.
static constexpr uint64_t UnderWayAt = 4;
/// Control came to the twin from the clean body that has called setjmp, and to that from there, or from a twin.
enum : uint32_t { FirstCome = 1, ComeAgain = 2 };

DebugLoc Twin::noLine(Function &Of) const {
  DISubprogram *Described = Of.getSubprogram();
  return Described ? DebugLoc(DILocation::get(Of.getContext(), 0, 0, Described)) : DebugLoc();
}

/// From a function's first block to one before it.
static void moveStaticAllocas(BasicBlock &From, BasicBlock &To) {
  for (Instruction &I : make_early_inc_range(From))
    if (auto *A = dyn_cast<AllocaInst>(&I); A && isa<ConstantInt>(A->getArraySize()))
      A->moveBefore(To, To.end());
}

/// The twin's first block: its stack objects, and where to go.
BasicBlock *Twin::makeHall() {
  Inside = &Body->getEntryBlock();
  LLVMContext &C = Body->getContext();
  BasicBlock *Hall = BasicBlock::Create(C, "tk.hall", Body, Inside);
  BasicBlock *Choose = BasicBlock::Create(C, "tk.choose", Body, Inside);
  Common = BasicBlock::Create(C, "tk.common", Body, Inside);
  BasicBlock *Nowhere = BasicBlock::Create(C, "tk.nowhere", Body);
  moveStaticAllocas(*Inside, *Hall);
  IRBuilder<> B(Hall);
  B.SetCurrentDebugLocation(DebugLoc());
  Value *Lives = Body->getArg(Body->arg_size() - 1);
  B.CreateCondBr(B.CreateIsNull(Lives), Inside, Choose, MDBuilder(C).createBranchWeights(1u << 20, 1));
  IRBuilder<>(Choose).CreateBr(Common);
  B.SetInsertPoint(Common);
  B.SetCurrentDebugLocation(DebugLoc());
  Choice = B.CreateSwitch(B.CreateLoad(B.getInt32Ty(), Lives), Nowhere, Doors.size());
  B.SetInsertPoint(Nowhere);
  B.SetCurrentDebugLocation(DebugLoc());
  B.CreateUnreachable();
  return Hall;
}

Value *Twin::hidden(IRBuilder<> &B, Value *Pointer) {
  auto *Type = FunctionType::get(Pointer->getType(), {Pointer->getType()}, /*isVarArg=*/false);
  return B.CreateCall(InlineAsm::get(Type, "", "=r,0", /*hasSideEffects=*/false), {Pointer});
}

static void keep(IRBuilder<> &B, Value *Here, Value *Word, unsigned At) {
  B.CreateAlignedStore(Word, B.CreateConstInBoundsGEP1_64(B.getInt64Ty(), Here, At), Align(8));
}

/// What all doors fill in alike, before the choice among them: in a function of hundreds of doors, each with hundreds
/// of words, these would be nine tenths of its code. What is not alive at a door is anything there.
void Twin::fillCommon(Value *Activation) {
  IRBuilder<> B(Choice);
  B.SetCurrentDebugLocation(DebugLoc());
  Value *Here = hidden(B, Activation);
  keep(B, Here, Keep.Layout, ActivationLayout);
  keep(B, Here, Activation, ActivationSelf);
  keep(B, Here, S.Frame ? B.CreatePtrToInt(S.Frame, B.getInt64Ty()) : B.getInt64(0), ActivationFrame);
  if (uint64_t Loops = Keep.Counted.size())
    B.CreateMemSetInline(B.CreateConstInBoundsGEP1_64(B.getInt64Ty(), Here, Keep.loopAt(0)), Align(8), B.getInt8(0),
                         B.getInt64(8 * Loops));
  fillRegisters(B, Here);
  if (!Keep.ObjectOf.empty())
    fillObjects(B, Here);
}

/// Registers that one operation defines, whatever the door. Others are those of branches that exclude each other.
void Twin::fillRegisters(IRBuilder<> &B, Value *Here) {
  MapVector<Row, const Operation *> Only;
  for (auto &[K, D] : Doors)
    for (const Operation *Op : D.Registers) {
      auto [Known, New] = Only.insert({Op->Defines, Op});
      if (!New && Known->second != Op)
        Known->second = nullptr;
    }
  for (auto [Register, Op] : Only) {
    if (!Op)
      continue;
    Value *Word = baseWord(*Op, B);
    findParts(Op, Word);
    keep(B, Here, Word, Keep.registerAt(Register));
  }
}

/// The values of the program that a word is computed of.
void Twin::findParts(const Operation *Op, Value *Word) {
  SmallVector<Value *, 2> &Found = Parts[Op];
  SmallVector<Value *, 8> Work = {Word};
  while (!Work.empty()) {
    Value *V = Work.pop_back_val();
    auto *I = dyn_cast<Instruction>(V);
    if (I && I->getParent() == Common)
      Work.append(I->op_begin(), I->op_end());
    else if (I || isa<Argument>(V))
      Found.push_back(V);
  }
}

/// The addresses of all objects; the sizes of those that are alive at the door.
void Twin::fillObjects(IRBuilder<> &B, Value *Here) {
  GlobalVariable *Table = aliveObjects();
  Value *Row = B.CreateInBoundsGEP(Table->getValueType(), Table, {B.getInt32(0), Choice->getCondition()});
  for (const auto &[Op, Object] : Keep.ObjectOf) {
    Value *Size = B.getInt64(Op->Size);
    if (isDynamic(*Op)) {
      if (none_of(Doors, [Op = Op](auto &Item) { return is_contained(Item.second.Objects, Op); })) {
        keep(B, Here, B.getInt64(0), Keep.objectAt(Object) + 1);
        continue;
      }
      Size = recordedWords(*Op, B)[Op->BaseKind == TK_BASE_RECORDED];
    }
    keep(B, Here, B.CreatePtrToInt(Op->Address, B.getInt64Ty()), Keep.objectAt(Object));
    Value *Alive = B.CreateLoad(B.getInt8Ty(), B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Row, Object));
    keep(B, Here, B.CreateSelect(B.CreateIsNotNull(Alive), Size, B.getInt64(0)), Keep.objectAt(Object) + 1);
  }
}

/// A row of bytes for each door: whether it has this object.
GlobalVariable *Twin::aliveObjects() {
  LLVMContext &C = Body->getContext();
  SmallVector<Constant *, 32> Rows;
  for (auto &[K, D] : Doors) {
    SmallVector<uint8_t, 64> Alive(Keep.Objects);
    for (const Operation *Op : D.Objects)
      Alive[Keep.ObjectOf.lookup(Op)] = 1;
    Rows.push_back(ConstantDataArray::get(C, Alive));
  }
  auto *Type = ArrayType::get(Rows.front()->getType(), Rows.size());
  auto *Table = new GlobalVariable(*Body->getParent(), Type, true, GlobalValue::PrivateLinkage,
                                   ConstantArray::get(Type, Rows), F.getName() + ".alive");
  Table->setUnnamedAddr(GlobalValue::UnnamedAddr::Global); // one may serve functions of several groups: it is in none
  return Table;
}

/// The doors at which what is filled in for all of them needs a value.
DenseMap<Value *, SmallVector<Twin::Door *, 4>> Twin::wanted() {
  DenseMap<Value *, SmallVector<Door *, 4>> At;
  for (auto &[K, D] : Doors) {
    if (S.Frame)
      At[S.Frame].push_back(&D);
    for (const Operation *Op : D.Registers)
      if (auto Known = Parts.find(Op); Known != Parts.end())
        for (Value *V : Known->second)
          At[V].push_back(&D);
    for (const Operation *Op : D.Objects) {
      At[Op->Address].push_back(&D);
      if (Op->Bytes)
        At[Op->Bytes].push_back(&D);
    }
  }
  return At;
}

/// Behind setjmp: where the frame is that the trace may know by its address; null, if it knows the activation by FRAME.
Value *Twin::frameToResume(IRBuilder<> &B) {
  Value *Lives = Body->getArg(Body->arg_size() - 1);
  Value *At = B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Lives, UnderWayAt);
  Value *IsKnown = B.CreateICmpEQ(B.CreateLoad(B.getInt32Ty(), At), B.getInt32(ComeAgain));
  return B.CreateSelect(IsKnown, ConstantPointerNull::get(B.getPtrTy()), Lives);
}

/// What else the activation holds at the door, and where it goes on in the twin.
void Twin::fill(Door &D, Runtime &R, Value *Activation, const MapVector<unsigned, AllocaInst *> &Shadows) {
  LLVMContext &C = Body->getContext();
  D.Filling = BasicBlock::Create(C, "tk.fill", Body, D.Target);
  IRBuilder<> B(D.Filling);
  B.SetCurrentDebugLocation(DebugLoc());
  Value *Here = hidden(B, Activation);
  auto Path = [&](unsigned Behind) { return B.getInt64(Keep.FirstPath + Behind); };
  Value *Innermost = B.CreateThreadLocalAddress(R.activations(*Body->getParent()));
  keep(B, Here, B.CreateLoad(B.getPtrTy(), Innermost), ActivationBelow);
  Value *Where = Path(D.Behind), *First = nullptr;
  if (D.Header) {
    First = B.CreateIsNull(Counters.lookup(D.Header));
    Where = B.CreateSelect(First, Path(D.BehindAtFirst), Where);
  }
  keep(B, Here, Where, ActivationPath);
  for (const Operation *Op : D.Registers)
    if (!Parts.count(Op))
      keep(B, Here, baseWord(*Op, B), Keep.registerAt(Op->Defines));
  for (auto [At, Header] : enumerate(Keep.Counted)) {
    if (!is_contained(D.Loops, Header))
      continue;
    Value *Number = Counters.lookup(Header);
    keep(B, Here, Header == D.Header ? B.CreateSub(Number, B.getInt64(1)) : Number, Keep.loopAt(At));
  }
  B.CreateStore(Activation, Innermost);
  Value *Lives = Body->getArg(Body->arg_size() - 1);
  if (D.Landing)
    B.CreateCall(R.Landing, {Lives})->setDebugLoc(noLine(*Body));
  B.CreateCall(R.resumed(*Body->getParent()), {Activation, D.Setjmp ? frameToResume(B) : Lives})
      ->setDebugLoc(noLine(*Body));
  if (Keep.IsDeferred) {
    auto Kept = [&](Type *T, unsigned At) {
      return B.CreateLoad(T, B.CreateConstInBoundsGEP1_64(B.getInt64Ty(), Here, At));
    };
    for (auto [At, Shadow] : Shadows)
      B.CreateStore(Kept(B.getInt64Ty(), At), Shadow);
    B.CreateStore(Kept(B.getPtrTy(), ActivationBelow), Innermost);
  }
  B.CreateBr(D.Target);
}

/// Words that are filled in for all doors of values that follow from others at this one, and not at each.
void Twin::fillMixed(Door &D, Value *Activation) {
  IRBuilder<> B(D.Filling, D.Filling->getFirstInsertionPt());
  B.SetCurrentDebugLocation(DebugLoc());
  Value *Here = nullptr;
  for (const Operation *Op : D.Registers) {
    auto Known = Parts.find(Op);
    if (Known == Parts.end() || none_of(Known->second, [&](Value *V) {
          auto *I = dyn_cast<Instruction>(V);
          return I && Mixed.contains(I) && D.Derived.contains(I);
        }))
      continue;
    if (!Here)
      Here = hidden(B, Activation);
    keep(B, Here, baseWord(*Op, B), Keep.registerAt(Op->Defines));
  }
}

/// Calls the twin from the entry, or from a door.
CallInst *Twin::callTwin(IRBuilder<> &B, Value *Lives, const Door *From) {
  SmallVector<Value *, 8> Arguments;
  for (Argument &A : F.args())
    Arguments.push_back(!From || From->Arguments.count(Body->getArg(A.getArgNo())) ? cast<Value>(&A)
                                                                                   : PoisonValue::get(A.getType()));
  Arguments.push_back(Lives);
  CallInst *Call = B.CreateCall(Body, Arguments);
  Call->setCallingConv(Body->getCallingConv());
  SmallVector<AttributeSet, 8> OfArguments;
  for (unsigned A = 0; A < Arguments.size(); ++A) {
    AttributeSet Given = Body->getAttributes().getParamAttrs(A);
    OfArguments.push_back(Given);
  }
  Call->setAttributes(
      AttributeList::get(F.getContext(), AttributeSet(), Body->getAttributes().getRetAttrs(), OfArguments));
  Call->setDebugLoc(noLine(F));
  return Call;
}

/// if (armed) goto cold
void Twin::test(Instruction *Position, BasicBlock *Cold, GlobalVariable *Armed) {
  BasicBlock *Head = Position->getParent();
  BasicBlock *Tail = Head->splitBasicBlock(Position->getIterator());
  Head->getTerminator()->eraseFromParent();
  IRBuilder<> B(Head);
  B.SetCurrentDebugLocation(DebugLoc());
  LoadInst *Word = B.CreateLoad(B.getInt8Ty(), Armed, /*isVolatile=*/true);
  Word->setMetadata(LLVMContext::MD_nosanitize, MDNode::get(B.getContext(), {}));
  B.CreateCondBr(B.CreateIsNull(Word), Tail, Cold, MDBuilder(B.getContext()).createBranchWeights(1u << 20, 1));
}

/// Around a setjmp of the clean body: what is under way is kept, and if it returns once more the runtime is told.
/// Returns which of the ways it is, if control goes through the door behind it. (To the optimiser only one store goes
/// before the load: both are volatile.)
Value *Twin::returnAgain(const Door &D, Runtime &R, Value *Lives, AllocaInst *Below) {
  IRBuilder<> B(cast<Instruction>(CleanOf[D.Setjmp]));
  B.SetCurrentDebugLocation(DebugLoc());
  Value *UnderWay = B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Lives, UnderWayAt);
  Value *Innermost = B.CreateThreadLocalAddress(R.activations(*F.getParent()));
  B.CreateStore(B.CreateLoad(B.getPtrTy(), Innermost), Below, /*isVolatile=*/true);
  B.CreateStore(B.getInt32(0), UnderWay, /*isVolatile=*/true);
  BasicBlock *First = D.Clean->getParent();
  MDNode *Unlikely = MDBuilder(B.getContext()).createBranchWeights(1, 1u << 20);
  B.SetInsertPoint(D.Clean);
  Instruction *Last = SplitBlockAndInsertIfThen(B.CreateIsNotNull(CleanOf[D.Setjmp]), D.Clean, false, Unlikely);
  B.SetInsertPoint(Last);
  B.SetCurrentDebugLocation(DebugLoc());
  Value *Was = B.CreateLoad(B.getInt32Ty(), UnderWay, /*isVolatile=*/true);
  B.CreateStore(B.getInt32(0), UnderWay, /*isVolatile=*/true);
  Value *List = B.CreateLoad(B.getPtrTy(), Below, /*isVolatile=*/true);
  B.CreateCall(R.returnedAgain(*F.getParent()), {Lives, List})->setDebugLoc(noLine(F));
  Value *Again = B.CreateSelect(B.CreateIsNull(Was), B.getInt32(FirstCome), B.getInt32(ComeAgain));
  B.SetInsertPoint(D.Clean->getParent(), D.Clean->getParent()->begin());
  PHINode *Way = B.CreatePHI(B.getInt32Ty(), 2, "tk.way");
  Way->addIncoming(B.getInt32(FirstCome), First);
  Way->addIncoming(Again, Last->getParent());
  return Way;
}

void Twin::openDoors(Runtime &R, GlobalVariable *Armed) {
  BasicBlock &Entry = F.getEntryBlock();
  IRBuilder<> Top(&Entry, Entry.begin());
  Top.SetCurrentDebugLocation(DebugLoc());
  AllocaInst *Lives = Top.CreateAlloca(ArrayType::get(Top.getInt8Ty(), LivesEnd), nullptr, "tk.lives");
  Lives->setAlignment(Strictest);
  bool CallsSetjmp = any_of(Doors, [](auto &Item) { return Item.second.Setjmp; });
  AllocaInst *Below = CallsSetjmp ? Top.CreateAlloca(Top.getPtrTy(), nullptr, "tk.below") : nullptr;
  for (auto &[K, D] : Doors) {
    IRBuilder<> B(BasicBlock::Create(F.getContext(), "tk.leave", &F));
    B.SetCurrentDebugLocation(DebugLoc());
    Value *Came = CallsSetjmp ? B.getInt32(FirstCome) : nullptr;
    if (D.Setjmp)
      Came = returnAgain(D, R, Lives, Below);
    else if (D.Landing)
      IRBuilder<>(D.Clean).CreateCall(R.unwound(*F.getParent()), {Lives})->setDebugLoc(noLine(F));
    test(D.Clean, B.GetInsertBlock(), Armed);
    B.CreateStore(B.getInt32(D.Number), Lives);
    if (Came)
      B.CreateStore(Came, B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Lives, UnderWayAt), /*isVolatile=*/true);
    for (auto [Life, Place] : zip(D.Lives, D.Places))
      B.CreateStore(CleanOf[Life], B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Lives, Place));
    CallInst *Call = callTwin(B, Lives, &D);
    markSite(Call, nullptr, {});
    if (WayBack *Way = wayBackFrom(K)) {
      if (!Way->Clean)
        takeBack(*Way, Lives);
      BasicBlock *Returned = BasicBlock::Create(F.getContext(), "tk.returned", &F);
      Value *Said = B.CreateLoad(B.getInt32Ty(), Lives);
      B.CreateCondBr(B.CreateICmpEQ(Said, B.getInt32(Way->Number)), Way->Clean, Returned);
      B.SetInsertPoint(Returned);
    }
    F.getReturnType()->isVoidTy() ? B.CreateRetVoid() : B.CreateRet(Call);
  }
}

/// The function's entry: armed, it is its twin.
void Twin::openEntry(GlobalVariable *Armed) {
  BasicBlock *Old = &F.getEntryBlock();
  BasicBlock *Entry = BasicBlock::Create(F.getContext(), "tk.entry", &F, Old);
  moveStaticAllocas(*Old, *Entry);
  IRBuilder<> B(BasicBlock::Create(F.getContext(), "tk.twin", &F));
  B.SetCurrentDebugLocation(DebugLoc());
  CallInst *Call = callTwin(B, ConstantPointerNull::get(B.getPtrTy()), nullptr);
  if (none_of(F.args(), [](const Argument &A) { return A.hasByValAttr(); }))
    Call->setTailCallKind(CallInst::TCK_Tail);
  markSite(Call, nullptr, {});
  F.getReturnType()->isVoidTy() ? B.CreateRetVoid() : B.CreateRet(Call);
  IRBuilder<>(Entry).CreateBr(Old);
  test(Entry->getTerminator(), B.GetInsertBlock(), Armed);
}

/// Assembly that puts `Rows` into a section that lives and dies with the function, tied to its twin, operand 0. Where
/// the linker's plugin optimises again it is kept: a tie has to be to what stands before, and that changes the order.
static std::string rows(const Function &F, StringRef Section, StringRef Rows) {
  std::string Group;
  if (const Comdat *Own = F.getComdat()) {
    for (char Letter : Own->getName())
      Group += Letter == '$' ? "$$" : std::string(1, Letter);
    Group = ",\"" + Group + "\",comdat";
  }
  bool IsTied = !isOptimisedAtLink(*F.getParent());
  return ("\n\t.pushsection " + Section + ",\"a" + (Group.empty() ? "" : "G") + (IsTied ? "o" : "") + "\",@progbits" +
          (IsTied ? ",${0:c}" : "") + Group + Rows + "\n\t.popsection")
      .str();
}

/// A row of section `tk_sites`: where the call is, and the path that resumes an activation behind it. For each stack
/// object a row of section `tk_site_objects`, with an instruction that computes its address. Of a moving object that is
/// where the clean body notes address and size, and the row's size is 0.
void Twin::markSite(Instruction *Call, Constant *Path, ArrayRef<const Operation *> Objects) {
  LLVMContext &C = F.getContext();
  std::string Text =
      ".Ltk_site${:uid}:" +
      rows(F, "tk_sites", "\n\t.long .Ltk_site${:uid}-.\n\t.long " + std::string(Path ? "${1:c}-." : "0"));
  std::string Constraints = Path ? "i,i" : "i";
  SmallVector<Value *, 4> Operands = {Body};
  if (Path)
    Operands.push_back(Path);
  for (const Operation *Op : Objects) {
    Text += rows(F, "tk_site_objects",
                 "\n\t.long .Ltk_site${:uid}-.\n\t.long " + std::to_string(Keep.ObjectOf.lookup(Op)) + "\n\t.quad " +
                     std::to_string(isMoving(*Op) ? 0 : Op->Size) + "\n\tleaq $" + std::to_string(Operands.size()) +
                     ", %rax\n\t.balign 32");
    Constraints += ",*m";
    Operands.push_back(isMoving(*Op) ? Notes.lookup(Op) : cast<Value>(CleanOf[cast<AllocaInst>(Op->Address)]));
  }
  SmallVector<Type *, 4> Types;
  for (Value *Operand : Operands)
    Types.push_back(Operand->getType());
  auto *Type = FunctionType::get(llvm::Type::getVoidTy(C), Types, false);
  IRBuilder<> B(Call);
  CallInst *Mark = B.CreateCall(InlineAsm::get(Type, Text, Constraints, /*hasSideEffects=*/true), Operands);
  for (unsigned Operand = Operands.size() - Objects.size(); Operand < Operands.size(); ++Operand) {
    Mark->addParamAttr(Operand, Attribute::get(C, Attribute::ElementType, llvm::Type::getInt8Ty(C)));
    neverCaptures(*Mark, Operand);
  }
  if (isOptimisedAtLink(*F.getParent()))
    Mark->setOnlyAccessesInaccessibleMemory(); // as its call may: it has to stay right before that
  else
    Mark->setDoesNotAccessMemory();
  Mark->setDoesNotThrow();
  Mark->setDebugLoc(noLine(F));
}

void Twin::markSites(GlobalVariable *Ids) {
  Type *Byte = Type::getInt8Ty(F.getContext()), *Word = Type::getInt64Ty(F.getContext());
  for (const Site &At : Sites) {
    Constant *Place = ConstantInt::get(Word, Keep.FirstPath + At.Segment);
    markSite(At.Call, ConstantExpr::getInBoundsGetElementPtr(Byte, Ids, ArrayRef<Constant *>{Place}), At.Objects);
  }
}

void Twin::connect(Runtime &R, GlobalVariable *Ids, GlobalVariable *Armed, Value *Activation,
                   const MapVector<unsigned, AllocaInst *> &Shadows) {
  makeHall();
  Doors.remove_if([](auto &Item) { return !Item.second.Target; });
  unsigned Number = 0;
  for (auto &[K, D] : Doors)
    D.Number = Number++;
  if (!Doors.empty())
    fillCommon(Activation);
  for (auto &[K, D] : Doors)
    fill(D, R, Activation, Shadows);
  findLives();
  findArguments();
  placeLives();
  for (auto &[K, D] : Doors)
    fillMixed(D, Activation);
  openWaysBack(R, Armed);
  SmallVector<AllocaInst *, 32> Slots;
  takeLives(Slots);
  for (auto [At, Shadow] : Shadows)
    Slots.push_back(Shadow);
  promote(Slots);
  markSites(Ids);
  if (!Doors.empty())
    openDoors(R, Armed);
  openEntry(Armed);
  // The SLP vectoriser looks at what each door hands over: in an interpreter that takes nine tenths of the compiler's
  // time. Nothing but runs gains by vectors.
  if (Paths.Runs.empty() || Doors.size() > ManyDoors)
    Body->addFnAttr(Attribute::NoImplicitFloat);
}

} // namespace tracekit
