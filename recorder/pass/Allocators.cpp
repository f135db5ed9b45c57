// Allocators.cpp: see Allocators.h.
#include "Allocators.h"

#include "Attributes.h"
#include "Compat.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace llvm;

namespace tracekit {
namespace {

constexpr StringLiteral AllocatorMark = "tracekit-allocator";  // what `allocatorText` says
constexpr StringLiteral UnseenMark = "no_instrument_function"; // Attributes.cpp

/// Roles of parameters: s the size, c how many of that size, b a block of the allocator, o where the new block's
/// address goes (the result is 0 then if there is one), _ something else.
struct AllocatorForm {
  StringRef Roles;
  bool IsNamed; // by an option

  bool has(char Role) const { return Roles.contains(Role); }
  /// TK_ALLOCATION_... of state.h
  uint32_t kind() const { return !has('b') ? 0 : has('s') ? 1 : 2; }
};

struct Member {
  StringLiteral Name, Roles;
};
constexpr Member MallocsFamily[] = {
    {"malloc", "s"},    {"calloc", "cs"}, {"realloc", "bs"},       {"reallocarray", "bcs"},
    {"free", "b"},      {"cfree", "b"},   {"aligned_alloc", "_s"}, {"posix_memalign", "o_s"},
    {"memalign", "_s"}, {"valloc", "s"},  {"pvalloc", "s"},
};

/// The member of malloc's family that a name ends with: of `PyMem_RawMalloc` `malloc`.
const Member *familyMember(StringRef Name) {
  const Member *Found = nullptr;
  for (const Member &Each : MallocsFamily)
    if (Name.ends_with_insensitive(Each.Name) && (!Found || Each.Name.size() > Found->Name.size()))
      Found = &Each;
  return Found;
}

/// What `Name` says of a function of one of these names.
std::optional<AllocatorForm> formBy(StringRef Name, StringRef Linkage, StringRef Source) {
  auto [Function, Roles] = Name.split(':');
  if (!Roles.empty())
    return Function == Linkage || Function == Source ? std::optional<AllocatorForm>({Roles, true}) : std::nullopt;
  bool IsPrefix = Function.consume_back("*");
  for (StringRef Known : {Linkage, Source}) {
    if (Known.empty() || (IsPrefix ? !startsWith(Known, Function) : Known != Function))
      continue;
    const Member *Like = familyMember(IsPrefix ? Known.drop_front(Function.size()) : Known);
    if (Like && (!IsPrefix || Known.size() == Function.size() + Like->Name.size()))
      return AllocatorForm{Like->Roles, true};
  }
  return std::nullopt;
}

/// `malloc` and its like are allocators where they are defined; elsewhere the recorder sees the calls.
std::optional<AllocatorForm> formOf(const Function &F, const AllocatorNames &Names) {
  StringRef Source = F.getSubprogram() ? F.getSubprogram()->getName() : "";
  for (StringRef Name : Names)
    if (std::optional<AllocatorForm> Form = formBy(Name, F.getName(), Source))
      return Form;
  if (!F.isDeclaration() && !F.hasLocalLinkage())
    for (const Member &Each : MallocsFamily)
      if (Each.Name == F.getName())
        return AllocatorForm{Each.Roles, false};
  return std::nullopt;
}

/// Whether the parameters and the result are of the types that the form needs.
bool fits(const Function &F, const AllocatorForm &Form) {
  if (F.arg_size() < Form.Roles.size() || F.isVarArg())
    return false;
  for (auto [Index, Role] : enumerate(Form.Roles)) {
    const Type *T = F.getArg(Index)->getType();
    if (Role == 's' || Role == 'c' ? !T->isIntegerTy() || T->getIntegerBitWidth() > 64
                                   : Role != '_' && !T->isPointerTy())
      return false;
  }
  const Type *Result = F.getReturnType();
  return Form.kind() == 2 || (Form.has('o') ? Result->isIntegerTy() : Result->isPointerTy());
}

/// Whether the body can have another name: nothing outside speaks of its blocks.
bool canMove(const Function &F) {
  return !F.hasFnAttribute(Attribute::Naked) && none_of(F, [](const BasicBlock &B) { return B.hasAddressTaken(); });
}

class Surrounder {
public:
  explicit Surrounder(Module &M) : M(M), C(M.getContext()) {
    Type *Pointer = PointerType::getUnqual(C), *Word = Type::getInt64Ty(C), *Void = Type::getVoidTy(C);
    Type *Int32 = Type::getInt32Ty(C);
    Before = runtime("__tk_allocating", FunctionType::get(Void, {Int32, Pointer, Pointer, Pointer}, false));
    After =
        runtime("__tk_allocated", FunctionType::get(Void, {Int32, Pointer, Word, Pointer, Pointer, Pointer}, false));
  }

  /// What `F` did is now done by a function of another name; `F` calls that. Returns it.
  Function *moveBody(Function &F, const AllocatorForm &Form) {
    Function *Body = sibling(F, ".allocates");
    makeInternalLike(*Body, F);
    Body->splice(Body->begin(), &F);
    for (Argument &Given : F.args()) {
      Argument *Moved = Body->getArg(Given.getArgNo());
      Moved->takeName(&Given);
      Given.replaceAllUsesWith(Moved);
    }
    Body->setSubprogram(F.getSubprogram());
    F.setSubprogram(nullptr);
    F.setPersonalityFn(nullptr);
    hide(*Body);
    Body->addFnAttr(
        "no-builtin-calloc"); // LLVM leaves malloc and memset alone in a `calloc`, which is no longer its name
    hide(F);
    surround(F, *Body, Form);
    mark(F, F.getName(), Form);
    return Body;
  }

  /// Calls of a function that is elsewhere go through one of this module.
  void callThrough(Function &F, const AllocatorForm &Form) {
    SmallVector<CallBase *, 8> Calls;
    for (User *U : F.users())
      if (auto *Call = dyn_cast<CallBase>(U);
          Call && Call->getCalledOperand() == &F && Call->getFunctionType() == F.getFunctionType())
        Calls.push_back(Call);
    if (Calls.empty())
      return;
    Function *Door = sibling(F, ".tracekit");
    Door->setAttributes(F.getAttributes());
    Door->setCallingConv(F.getCallingConv());
    Door->setLinkage(GlobalValue::InternalLinkage);
    Door->setUWTableKind(M.getUwtable());
    hide(*Door);
    surround(*Door, F, Form);
    mark(*Door, F.getName(), Form);
    for (CallBase *Call : Calls)
      Call->setCalledFunction(Door);
  }

private:
  FunctionCallee runtime(StringRef Name, FunctionType *Type) {
    AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
    FunctionCallee Callee = M.getOrInsertFunction(Name, Type, NoUnwind);
    cast<Function>(Callee.getCallee())->setVisibility(GlobalValue::HiddenVisibility);
    cast<Function>(Callee.getCallee())->setDSOLocal(true);
    return Callee;
  }

  Function *sibling(const Function &F, const Twine &Suffix) {
    return Function::Create(F.getFunctionType(), F.getLinkage(), F.getAddressSpace(), F.getName() + Suffix, &M);
  }

  /// The call of `F` stays one, as that of a library is.
  static void hide(Function &F) {
    F.removeFnAttr(Attribute::AlwaysInline);
    F.removeFnAttr(Attribute::InlineHint);
    F.removeFnAttr(Attribute::Memory); // what the runtime writes is no secret of the allocator's
    F.addFnAttr(Attribute::NoInline);
    F.addFnAttr(UnseenMark);
  }

  static void mark(Function &F, StringRef Name, const AllocatorForm &Form) {
    F.addFnAttr(AllocatorMark, (Name + ":" + Form.Roles).str());
  }

  Value *product(IRBuilder<> &B, Function &F, StringRef Roles) {
    Value *Size = B.getInt64(Roles.contains('s'));
    for (auto [Index, Role] : enumerate(Roles))
      if (Role == 's' || Role == 'c')
        Size = B.CreateMul(Size, B.CreateZExtOrTrunc(F.getArg(Index), B.getInt64Ty()));
    return Size;
  }

  /// The body of `F`: a call of `Body`, with one of the runtime before and one after it.
  void surround(Function &F, Function &Body, const AllocatorForm &Form) {
    IRBuilder<> B(BasicBlock::Create(C, "", &F));
    auto *Null = ConstantPointerNull::get(PointerType::getUnqual(C));
    auto Given = [&](char Role) -> Value * {
      return Form.has(Role) ? cast<Value>(F.getArg(Form.Roles.find(Role))) : cast<Value>(Null);
    };
    Value *Kind = B.getInt32(Form.kind());
    Value *Frame = B.CreateIntrinsic(Intrinsic::frameaddress, {B.getPtrTy()}, {B.getInt32(0)});
    Value *Caller = B.CreateIntrinsic(Intrinsic::returnaddress, {}, {B.getInt32(0)});
    B.CreateCall(Before, {Kind, Given('b'), Frame, Caller});
    SmallVector<Value *, 4> Arguments;
    for (Argument &Each : F.args())
      Arguments.push_back(&Each);
    CallInst *Call = B.CreateCall(&Body, Arguments);
    Call->setCallingConv(Body.getCallingConv());
    SmallVector<AttributeSet, 4> OfParameters;
    for (unsigned Index = 0; Index < F.arg_size(); ++Index)
      OfParameters.push_back(F.getAttributes().getParamAttrs(Index));
    Call->setAttributes(AttributeList::get(C, AttributeSet(), F.getAttributes().getRetAttrs(), OfParameters));
    Value *Result = Null;
    if (Form.has('o')) {
      Value *Failed = B.CreateICmpNE(Call, Constant::getNullValue(Call->getType()));
      Result = B.CreateSelect(Failed, Null, B.CreateLoad(B.getPtrTy(), Given('o')));
    } else if (Call->getType()->isPointerTy()) {
      Result = Call;
    }
    B.CreateCall(After, {Kind, Given('b'), product(B, F, Form.Roles), Result, Frame, Caller});
    if (Call->getType()->isVoidTy())
      B.CreateRetVoid();
    else
      B.CreateRet(Call);
  }

  Module &M;
  LLVMContext &C;
  FunctionCallee Before, After;
};

/// Whether nobody but these functions can enter a function.
bool isReachedBy(const SetVector<Function *> &Callers, const Function &F) {
  return F.hasLocalLinkage() && !F.use_empty() && all_of(F.users(), [&](const User *U) {
           auto *Call = dyn_cast<CallBase>(U);
           return Call && Call->getCalledOperand() == &F &&
                  none_of(Call->args(), [&](const Use &A) { return A == &F; }) &&
                  Callers.contains(const_cast<Function *>(Call->getFunction()));
         });
}

/// What only allocators call is their code, too.
void hideReached(Module &M, SetVector<Function *> Hidden) {
  for (size_t Before = 0; Before != Hidden.size();) {
    Before = Hidden.size();
    for (Function &F : M)
      if (!F.isDeclaration() && !Hidden.contains(&F) && isReachedBy(Hidden, F)) {
        F.addFnAttr(UnseenMark);
        Hidden.insert(&F);
      }
  }
}

} // namespace

bool surroundAllocators(Module &M, const AllocatorNames &Names) {
  SmallVector<std::pair<Function *, AllocatorForm>, 4> Found;
  for (Function &F : M) {
    if (F.isIntrinsic() || F.hasAvailableExternallyLinkage() || startsWith(F.getName(), "__tk_"))
      continue;
    std::optional<AllocatorForm> Form = formOf(F, Names);
    if (!Form)
      continue;
    if (fits(F, *Form) && canMove(F))
      Found.push_back({&F, *Form});
    else if (Form->IsNamed)
      errs() << "tracekit: warning: " << F.getName()
             << " is not taken for an allocator: its parameters or its result are"
             << " not those of one\n";
  }
  if (Found.empty())
    return false;
  Surrounder S(M);
  SetVector<Function *> Hidden;
  for (auto &[F, Form] : Found) {
    if (F->isDeclaration()) {
      S.callThrough(*F, Form);
      continue;
    }
    Hidden.insert(S.moveBody(*F, Form));
  }
  hideReached(M, std::move(Hidden));
  return true;
}

StringRef allocatorText(const Function &F) { return F.getFnAttribute(AllocatorMark).getValueAsString(); }

StringRef behindDoor(const Function &F) {
  StringRef Allocator = allocatorText(F).rsplit(':').first;
  return Allocator.empty() ? F.getName() : Allocator;
}

} // namespace tracekit
