// Descriptors.cpp: see Descriptors.h.
#include "Descriptors.h"

#include "Compat.h"
#include "Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace tracekit {

Descriptors::Descriptors(Module &M, Unit &U, SourceMap &Sources, TypeRows &Types)
    : M(M), U(U), Sources(Sources), Types(Types) {
  UnitPlaceholder = new GlobalVariable(M, Type::getInt8Ty(M.getContext()), true, GlobalValue::PrivateLinkage,
                                       Constant::getNullValue(Type::getInt8Ty(M.getContext())), "tk.unit.placeholder");
}

bool isOptimisedAtLink(const Module &M) { return M.getModuleFlag("EnableSplitLTOUnit"); } // clang's mark

/// A private global of `Section` that lives and dies with `With`: in its COMDAT, and tied to it for --gc-sections.
/// Where the link may still delete `With`, it is kept: code generation fails at what is tied to nothing
/// (RowsOfTheDead).
GlobalVariable *Descriptors::place(Constant *Initial, StringRef Section, GlobalObject &With) {
  auto *G = new GlobalVariable(M, Initial->getType(), false, GlobalValue::PrivateLinkage, Initial, "tk");
  G->setSection(Section);
  G->setAlignment(Align(Section == "tk_ids" || Section == "tk_armed" ? 1 : 8)); // rows are read as an array: no padding
  G->setComdat(With.getComdat());
  if (!isOptimisedAtLink(M))
    G->setMetadata(LLVMContext::MD_associated, MDNode::get(M.getContext(), ValueAsMetadata::get(&With)));
  Kept.push_back(G);
  return G;
}

GlobalVariable *Descriptors::addFunction(Function &F, Row Index, unsigned Paths) {
  LLVMContext &C = M.getContext();
  Type *Byte = Type::getInt8Ty(C);
  // Not in .bss.*, which linkers mix with each file's own .bss: ids would then be as far apart as the program's arrays.
  GlobalVariable *Ids = place(ConstantAggregateZero::get(ArrayType::get(Byte, Paths)), "tk_ids", F);
  IntegerType *Int32 = Type::getInt32Ty(C);
  place(ConstantStruct::getAnon({Ids, UnitPlaceholder, ConstantInt::get(Int32, Index), ConstantInt::get(Int32, Paths)}),
        "tk_functions", F);
  return Ids;
}

GlobalVariable *Descriptors::addLayout(Function &F, GlobalVariable *Ids, ArrayRef<uint32_t> Counts,
                                       ArrayRef<uint32_t> Numbers, GlobalVariable *Armed) {
  LLVMContext &C = M.getContext();
  Constant *None = ConstantPointerNull::get(PointerType::getUnqual(C)), *Table = None;
  if (!Numbers.empty()) {
    Constant *Rows = ConstantDataArray::get(C, Numbers);
    auto *Made =
        new GlobalVariable(M, Rows->getType(), true, GlobalValue::PrivateLinkage, Rows, F.getName() + ".loops");
    Made->setUnnamedAddr(GlobalValue::UnnamedAddr::Global); // one may serve functions of several groups: it is in none
    Table = Made;
  }
  return place(
      ConstantStruct::getAnon({ConstantDataArray::get(C, Counts), Ids, Table, Armed ? cast<Constant>(Armed) : None}),
      "tk_activations", F);
}

GlobalVariable *Descriptors::addArmed(Function &F) {
  return place(Constant::getNullValue(Type::getInt8Ty(M.getContext())), "tk_armed", F);
}

static bool hasNameOfItsOwn(const GlobalVariable &G) {
  return !G.isDeclaration() && !G.hasAvailableExternallyLinkage() && !G.hasAppendingLinkage() &&
         !G.hasPrivateLinkage() && G.hasName() && !startsWith(G.getName(), "llvm.") &&
         !startsWith(G.getName(), "__tk_") && G.getSection() != "llvm.metadata" && G.getAddressSpace() == 0 &&
         !startsWith(G.getSection(), ".debug") && // what rustc tells gdb is in no memory
         G.getValueType()->isSized();
}

static bool isSameStorage(unsigned Tag) {
  return Tag == dwarf::DW_TAG_typedef || Tag == dwarf::DW_TAG_const_type || Tag == dwarf::DW_TAG_volatile_type ||
         Tag == dwarf::DW_TAG_atomic_type;
}

static bool isStructure(unsigned Tag) {
  return Tag == dwarf::DW_TAG_structure_type || Tag == dwarf::DW_TAG_class_type || Tag == dwarf::DW_TAG_union_type;
}

/// The name of a type; of an array of structures that of the structure, so that both can be told from numbers.
static StringRef nameOf(const DIType *T) {
  const DIType *Element = T;
  while (Element) {
    if (auto *Composite = dyn_cast<DICompositeType>(Element)) {
      if (isStructure(Composite->getTag()))
        return Composite->getName().empty() ? "structure" : Composite->getName();
      if (Composite->getTag() != dwarf::DW_TAG_array_type)
        break;
      Element = Composite->getBaseType();
    } else if (auto *Derived = dyn_cast<DIDerivedType>(Element); Derived && isSameStorage(Derived->getTag())) {
      Element = Derived->getBaseType();
    } else {
      break;
    }
  }
  return T ? T->getName() : StringRef();
}

void Descriptors::addGlobal(GlobalVariable &G) {
  LLVMContext &C = M.getContext();
  tk_row_globals R = {};
  R.size = M.getDataLayout().getTypeAllocSize(G.getValueType());
  R.name = U.string(G.getName());
  R.flags = (G.isConstant() ? TK_GLOBAL_CONSTANT : 0) | (G.isThreadLocal() ? TK_GLOBAL_THREAD_LOCAL : 0) |
            (G.hasLocalLinkage() ? TK_GLOBAL_LOCAL : 0);
  R.location = TK_NONE;
  SmallVector<DIGlobalVariableExpression *, 1> Debug;
  G.getDebugInfo(Debug);
  if (Debug.empty()) {
    if (std::string Name = sourceName(G.getName()); Name != G.getName())
      R.source_name = U.string(Name);
  } else {
    const DIGlobalVariable *Source = Debug.front()->getVariable();
    R.source_name = U.string(Source->getName());
    R.type = U.string(nameOf(Source->getType()));
    R.location = Sources.declaration(Source->getFile(), Source->getLine(), nullptr);
    if (Row Of = Types.of(Source->getType()); Of != TK_NONE)
      U.Typed.push_back({TK_TYPED_GLOBAL, Row(U.Globals.size()), Of, 0});
  }
  Row Index = U.Globals.size();
  U.Globals.push_back(R);
  if (G.isThreadLocal())
    return; // its address is a thread's, not the image's
  if (G.isStrongDefinitionForLinker() && !G.hasComdat())
    GlobalRows[&G] = Index;
  // A constant whose address does not matter may be one with its equals, in a section to which lld ties no other.
  G.setUnnamedAddr(GlobalValue::UnnamedAddr::None);
  IntegerType *Int32 = Type::getInt32Ty(C);
  place(ConstantStruct::getAnon({&G, UnitPlaceholder, ConstantInt::get(Int32, Index), ConstantInt::get(Int32, 0)}),
        "tk_globals", G);
}

void Descriptors::addGlobals() {
  SmallVector<GlobalVariable *, 64> Named;
  for (GlobalVariable &G : M.globals())
    if (hasNameOfItsOwn(G))
      Named.push_back(&G);
  for (GlobalVariable *G : Named)
    addGlobal(*G);
}

void Descriptors::finish() {
  if (!Kept.empty()) {
    Constant *Bytes = ConstantDataArray::getString(M.getContext(), U.bytes(), false);
    auto *Blob = new GlobalVariable(M, Bytes->getType(), true, GlobalValue::PrivateLinkage, Bytes, "tk.unit");
    Blob->setAlignment(Align(8));
    Blob->setSection(".rodata.tk");
    UnitPlaceholder->replaceAllUsesWith(Blob);
    Kept.push_back(Blob);
    if (isOptimisedAtLink(M))
      appendToUsed(M, Kept); // --gc-sections of some linkers takes all sections that nothing refers to
    else
      appendToCompilerUsed(M, Kept);
  }
  UnitPlaceholder->eraseFromParent();
}

PreservedAnalyses RowsOfTheDead::run(Module &M, ModuleAnalysisManager &) {
  SmallVector<GlobalVariable *, 8> Dead;
  for (GlobalVariable &G : M.globals())
    if (MDNode *Tie = G.getMetadata(LLVMContext::MD_associated); Tie && !Tie->getOperand(0))
      Dead.push_back(&G);
  if (Dead.empty())
    return PreservedAnalyses::all();
  removeFromUsedLists(M, [&](Constant *C) { return is_contained(Dead, C->stripPointerCasts()); });
  SmallVector<GlobalValue *, 8> InUse;
  for (GlobalVariable *G : reverse(Dead)) { // what describes an address was made behind it
    G->removeDeadConstantUsers();
    if (G->use_empty()) {
      G->eraseFromParent();
    } else {
      G->setMetadata(LLVMContext::MD_associated, nullptr);
      InUse.push_back(G);
    }
  }
  if (!InUse.empty())
    appendToCompilerUsed(M, InUse);
  return PreservedAnalyses::none();
}

} // namespace tracekit
