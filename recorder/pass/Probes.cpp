// Probes.cpp: see Probes.h. What the arguments are is said in a text, as `record --intercept` has it.
#include "Probes.h"

#include "Compat.h"

#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace tracekit {
namespace {

const DIType *stripped(const DIType *T) {
  while (auto *Derived = dyn_cast_or_null<DIDerivedType>(T)) {
    unsigned Tag = Derived->getTag();
    if (Tag != dwarf::DW_TAG_typedef && Tag != dwarf::DW_TAG_const_type && Tag != dwarf::DW_TAG_volatile_type &&
        Tag != dwarf::DW_TAG_restrict_type && Tag != dwarf::DW_TAG_atomic_type)
      break;
    T = Derived->getBaseType();
  }
  return T;
}

bool isPointer(const DIType *T) {
  auto *Derived = dyn_cast_or_null<DIDerivedType>(T);
  return Derived &&
         (Derived->getTag() == dwarf::DW_TAG_pointer_type || Derived->getTag() == dwarf::DW_TAG_reference_type ||
          Derived->getTag() == dwarf::DW_TAG_rvalue_reference_type);
}

bool isCharacter(const DIType *T) {
  auto *Basic = dyn_cast_or_null<DIBasicType>(T);
  return Basic && (Basic->getEncoding() == dwarf::DW_ATE_signed_char || Basic->getEncoding() == dwarf::DW_ATE_UTF) &&
         Basic->getSizeInBits() == 8 && Basic->getName() != "signed char";
}

/// Where the debug information says nothing.
std::string textOf(const Type *T) {
  if (T->isVoidTy())
    return "void";
  if (T->isFloatTy() || T->isDoubleTy())
    return T->isFloatTy() ? "f32" : "f64";
  if (T->isIntegerTy() && T->getIntegerBitWidth() <= 64)
    return "i" + std::to_string(T->getIntegerBitWidth() <= 8 ? 8 : PowerOf2Ceil(T->getIntegerBitWidth()));
  return T->isPointerTy() ? "ptr" : "u64";
}

std::string textOf(const DIType *Declared, const Type *T) {
  const DIType *D = stripped(Declared);
  if (T->isPointerTy() && isPointer(D))
    return isCharacter(stripped(cast<DIDerivedType>(D)->getBaseType())) ? "string" : "ptr";
  auto *Basic = dyn_cast_or_null<DIBasicType>(D);
  std::string Known = textOf(T);
  if (!Basic || !T->isIntegerTy() || Known[0] != 'i')
    return Known;
  if (Basic->getEncoding() == dwarf::DW_ATE_boolean)
    return "bool";
  bool IsUnsigned = Basic->getEncoding() == dwarf::DW_ATE_unsigned || //
                    Basic->getEncoding() == dwarf::DW_ATE_unsigned_char;
  return (IsUnsigned ? "u" : "i") + Known.substr(1);
}

/// The source's names of the parameters, from 0; "" where none is known.
std::vector<std::string> parameterNames(Function &F) {
  std::vector<std::string> Names(F.arg_size());
  auto Note = [&](const DILocalVariable *V) {
    if (V && V->getScope()->getSubprogram() == F.getSubprogram() && V->getArg() && V->getArg() <= Names.size())
      Names[V->getArg() - 1] = V->getName().str();
  };
  if (F.getSubprogram())
    for (const DINode *Node : F.getSubprogram()->getRetainedNodes())
      Note(dyn_cast_or_null<DILocalVariable>(Node));
  for (Instruction &I : instructions(F)) {
    if (isa<AllocaInst>(I))
      Note(variableAt(&I));
    forEachAssignment(I, [&](const DILocalVariable *V, const DILocation *, Value *) { Note(V); });
  }
  return Names;
}

/// main's arguments are strings, as many as the first says.
bool isMain(const Function &F) { return F.getName() == "main" && F.arg_size() >= 2; }

std::string prototype(Function &F, StringRef Name) {
  DITypeRefArray Types(nullptr);
  if (F.getSubprogram() && F.getSubprogram()->getType())
    Types = F.getSubprogram()->getType()->getTypeArray();
  bool IsKnown = Types.size() == F.arg_size() + 1; // else the code generator has split or added some
  auto Type = [&](unsigned Index, const llvm::Type *T) { return IsKnown ? textOf(Types[Index], T) : textOf(T); };
  std::vector<std::string> Names = parameterNames(F);
  for (unsigned Index = 0; Index < Names.size(); Index++)
    if (Names[Index].empty() || (!IsKnown && F.getSubprogram() && Types.size() > 0))
      Names[Index] = "a" + std::to_string(Index + 1);
  std::string Text = Name.str() + "(";
  unsigned Count = std::min<unsigned>(F.arg_size(), MostArguments);
  for (unsigned Index = 0; Index < Count; Index++) {
    std::string Known = Type(Index + 1, F.getArg(Index)->getType());
    if (isMain(F) && Index == 1)
      Known = "string[" + Names[0] + "]";
    Text += (Index ? ", " : "") + Names[Index] + ": " + Known;
  }
  Text += ")";
  std::string Result = Type(0, F.getReturnType());
  return Result == "void" ? Text : Text + " -> " + Result;
}

/// Its bits, as 64 of them.
Value *asWord(IRBuilder<> &B, Value *V) {
  Type *T = V->getType(), *Word = B.getInt64Ty();
  if (T->isPointerTy())
    return B.CreatePtrToInt(V, Word);
  if (T->isFloatTy())
    V = B.CreateBitCast(V, B.getInt32Ty());
  else if (T->isDoubleTy())
    V = B.CreateBitCast(V, Word);
  else if (!T->isIntegerTy() || T->getIntegerBitWidth() > 64)
    return B.getInt64(0);
  return B.CreateZExtOrTrunc(V, Word);
}

class Prober {
public:
  explicit Prober(Module &M) : M(M), C(M.getContext()) {
    Type *Pointer = PointerType::getUnqual(C), *Int32 = Type::getInt32Ty(C), *Word = Type::getInt64Ty(C);
    AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
    Callee = M.getOrInsertFunction("__tk_probe", FunctionType::get(Type::getVoidTy(C), {Pointer, Int32, Word}, true),
                                   NoUnwind);
    cast<Function>(Callee.getCallee())->setVisibility(GlobalValue::HiddenVisibility);
    cast<Function>(Callee.getCallee())->setDSOLocal(true);
  }

  void add(Function &F, StringRef Name) {
    unsigned Count = std::min<unsigned>(F.arg_size(), MostArguments);
    Constant *Text = ConstantDataArray::getString(C, prototype(F, Name));
    auto *Kept = new GlobalVariable(M, Text->getType(), true, GlobalValue::PrivateLinkage, Text, "__tk_prototype");
    Kept->setSection("tk_probes"); // recorder/elf.py reads them there
    Kept->setAlignment(Align(1));
    Used.push_back(Kept);
    IntegerType *Int32 = Type::getInt32Ty(C);
    auto *Row = ConstantStruct::getAnon({Kept, ConstantInt::get(Int32, Count), ConstantInt::get(Int32, 0)});
    auto *Probe =
        new GlobalVariable(M, Row->getType(), false, GlobalValue::InternalLinkage, Row, "__tk_probe." + F.getName());
    SmallVector<ReturnInst *, 4> Returns;
    for (BasicBlock &Block : F)
      if (auto *Return = dyn_cast<ReturnInst>(Block.getTerminator()); Return && !Block.getTerminatingMustTailCall())
        Returns.push_back(Return);
    IRBuilder<> Entry(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    call(Entry, F, Count, Probe, 0, Entry.getInt64(0));
    for (ReturnInst *Return : Returns) {
      IRBuilder<> B(Return);
      Value *Result = Return->getReturnValue();
      call(B, F, Count, Probe, 1, Result ? asWord(B, Result) : B.getInt64(0));
    }
  }

  void finish() { appendToCompilerUsed(M, Used); }

private:
  void call(IRBuilder<> &B, Function &F, unsigned Count, Value *Probe, uint32_t Leaves, Value *Result) {
    SmallVector<Value *, 8> Arguments = {Probe, B.getInt32(Leaves), Result};
    for (unsigned Index = 0; Index < Count; Index++)
      Arguments.push_back(asWord(B, F.getArg(Index)));
    CallInst *Call = B.CreateCall(Callee, Arguments);
    if (F.getSubprogram())
      Call->setDebugLoc(DILocation::get(C, F.getSubprogram()->getScopeLine(), 0, F.getSubprogram()));
  }

  Module &M;
  LLVMContext &C;
  FunctionCallee Callee;
  SmallVector<GlobalValue *, 4> Used;
};

} // namespace

void addProbes(Module &M, ArrayRef<std::string> Names) {
  SmallVector<std::pair<Function *, StringRef>, 4> Found;
  for (Function &F : M) {
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage() || startsWith(F.getName(), "__tk_"))
      continue;
    StringRef Source = F.getSubprogram() ? F.getSubprogram()->getName() : "";
    for (const std::string &Name : Names)
      if (Name == F.getName() || Name == Source) {
        Found.push_back({&F, Name});
        break;
      }
  }
  if (Found.empty())
    return;
  Prober P(M);
  for (auto [F, Name] : Found)
    P.add(*F, Name);
  P.finish();
}

} // namespace tracekit
