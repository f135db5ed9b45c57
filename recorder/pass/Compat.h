// Compat.h: everything that differs between LLVM 16 and 22, and nothing else.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/TargetParser/Triple.h"

#if __has_include("llvm/IR/AttributeMask.h")
#include "llvm/IR/AttributeMask.h"
#endif
#if LLVM_VERSION_MAJOR >= 19
#include "llvm/IR/DebugProgramInstruction.h"
#endif
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

#include <type_traits>

namespace tracekit {

/// Calls `callback(ModulePassManager &, OptimizationLevel)` where the optimisation pipeline begins, after inlining.
template <typename Callback> void atOptimizerEarly(llvm::PassBuilder &PB, Callback callback) {
#if LLVM_VERSION_MAJOR >= 20
  PB.registerOptimizerEarlyEPCallback([callback](llvm::ModulePassManager &MPM, llvm::OptimizationLevel Level,
                                                 llvm::ThinOrFullLTOPhase) { callback(MPM, Level); });
#else
  PB.registerOptimizerEarlyEPCallback(callback);
#endif
}

/// The same at the pipeline's end.
template <typename Callback> void atOptimizerLast(llvm::PassBuilder &PB, Callback callback) {
#if LLVM_VERSION_MAJOR >= 20
  PB.registerOptimizerLastEPCallback([callback](llvm::ModulePassManager &MPM, llvm::OptimizationLevel Level,
                                                llvm::ThinOrFullLTOPhase) { callback(MPM, Level); });
#else
  PB.registerOptimizerLastEPCallback(callback);
#endif
}

/// The target triple as text; getTargetTriple() returns a string before LLVM 21, a Triple since.
inline std::string targetTriple(const llvm::Module &M) { return llvm::Triple(M.getTargetTriple()).str(); }

/// Says of an argument that the call keeps no copy of the pointer.
inline void neverCaptures(llvm::CallInst &Call, unsigned Operand) {
#if LLVM_VERSION_MAJOR >= 21
  Call.addParamAttr(Operand, llvm::Attribute::getWithCaptureInfo(Call.getContext(), llvm::CaptureInfo::none()));
#else
  Call.addParamAttr(Operand, llvm::Attribute::NoCapture);
#endif
}

inline bool startsWith(llvm::StringRef Text, llvm::StringRef Prefix) {
  return Text.take_front(Prefix.size()) == Prefix;
}

/// What LLVM says to a name of C++ without the parameters; not every version can leave them out. Free the result.
template <typename Name>
auto demangleWithoutParameters(Name Linkage, int) -> decltype(llvm::itaniumDemangle(Linkage, false)) {
  return llvm::itaniumDemangle(Linkage, false);
}
template <typename Name> char *demangleWithoutParameters(Name, long) { return nullptr; }

/// The object of llvm.lifetime.start and .end; they lost their size argument in LLVM 22.
inline llvm::Value *lifetimeObject(const llvm::IntrinsicInst &I) {
  return I.getArgOperand(I.arg_size() - 1)->stripPointerCasts();
}

/// An llvm::SCEVExpander; LLVM 22 asks the ScalarEvolution for the data layout, those before are given it.
template <typename Expander, typename Evolution>
Expander expanderFor(Evolution &SE, const llvm::DataLayout &DL, const char *Name) {
  if constexpr (std::is_constructible_v<Expander, Evolution &, const char *>)
    return Expander(SE, Name);
  else
    return Expander(SE, DL, Name);
}

/// Whether a debug record or intrinsic that binds a variable to `V` says that the variable is there. One that binds it
/// to a local variable's address as a value speaks of a pointer, another variable.
template <typename Record> bool saysWhereItIs(const Record &R, const llvm::Value *V, const llvm::Value *Assigned) {
  return !llvm::isa<llvm::AllocaInst>(V) || Assigned == V || R.isAddressOfVariable() ||
         R.getExpression()->startsWithDeref();
}

/// What debug intrinsics name `V` by; they name a constant otherwise.
inline llvm::LocalAsMetadata *localMetadata(llvm::Value *V) {
  return llvm::isa<llvm::Constant>(V) ? nullptr : llvm::LocalAsMetadata::getIfExists(V);
}

/// The local variables that debug records or intrinsics bind to `V`.
inline llvm::SmallVector<const llvm::DILocalVariable *, 2> variablesOf(llvm::Value *V) {
  llvm::SmallVector<const llvm::DILocalVariable *, 2> Found;
#if LLVM_VERSION_MAJOR >= 19
  if (auto *I = llvm::dyn_cast<llvm::Instruction>(V))
    if (auto *Wrapped = llvm::ValueAsMetadata::getIfExists(I))
      for (llvm::DbgVariableRecord *Record : Wrapped->getAllDbgVariableRecordUsers())
        if (saysWhereItIs(*Record, V, Record->isDbgAssign() ? Record->getAddress() : nullptr))
          Found.push_back(Record->getVariable());
#endif
  if (auto *Wrapped = localMetadata(V))
    if (auto *AsValue = llvm::MetadataAsValue::getIfExists(V->getContext(), Wrapped))
      for (llvm::User *U : AsValue->users())
        if (auto *Intrinsic = llvm::dyn_cast<llvm::DbgVariableIntrinsic>(U)) {
          auto *Assign = llvm::dyn_cast<llvm::DbgAssignIntrinsic>(Intrinsic);
          if (saysWhereItIs(*Intrinsic, V, Assign ? Assign->getAddress() : nullptr))
            Found.push_back(Intrinsic->getVariable());
        }
  return Found;
}

/// Whether a compilation unit is one of Fortran.
inline bool isFortranUnit(const llvm::DICompileUnit &Unit) {
  auto Language = Unit.getSourceLanguage();
#if LLVM_VERSION_MAJOR >= 22
  if (Language.hasVersionedName())
    return Language.getName() == llvm::dwarf::DW_LNAME_Fortran;
  return llvm::dwarf::isFortran(llvm::dwarf::SourceLanguage(Language.getUnversionedName()));
#else
  return llvm::dwarf::isFortran(llvm::dwarf::SourceLanguage(Language));
#endif
}

/// The local variable that lies at the address `V`, by its declaration or by the assignments that are tracked instead;
/// `Whole`: only one that lies there as a whole and by itself.
inline const llvm::DILocalVariable *variableAt(llvm::Value *V, bool Whole = false) {
  const llvm::DILocalVariable *Found = nullptr;
  auto See = [&](const auto &Record) {
    if (!Whole || !Record.getExpression()->getNumElements())
      Found = Record.getVariable();
  };
#if LLVM_VERSION_MAJOR >= 19
  if (auto *Wrapped = llvm::ValueAsMetadata::getIfExists(V))
    for (llvm::DbgVariableRecord *Record : Wrapped->getAllDbgVariableRecordUsers())
      if (Record->isDbgAssign() ? Record->getAddress() == V : Record->isDbgDeclare())
        See(*Record);
#endif
  if (auto *Wrapped = localMetadata(V))
    if (auto *AsValue = llvm::MetadataAsValue::getIfExists(V->getContext(), Wrapped))
      for (llvm::User *U : AsValue->users()) {
        if (auto *Assigned = llvm::dyn_cast<llvm::DbgAssignIntrinsic>(U)) {
          if (Assigned->getAddress() == V)
            See(*Assigned);
        } else if (auto *Declared = llvm::dyn_cast<llvm::DbgDeclareInst>(U)) {
          See(*Declared);
        }
      }
  return Found;
}

/// Declares the variable of one stack slot to lie in another, too.
inline void copyDeclaration(llvm::AllocaInst &From, llvm::AllocaInst &To) {
#if LLVM_VERSION_MAJOR >= 19
  if (auto *Wrapped = llvm::ValueAsMetadata::getIfExists(&From))
    for (llvm::DbgVariableRecord *Record : Wrapped->getAllDbgVariableRecordUsers())
      if (Record->isDbgDeclare()) {
        llvm::DbgVariableRecord *Copy = Record->clone();
        Copy->insertAfter(Record);
        Copy->replaceVariableLocationOp(&From, &To);
      }
#endif
  if (auto *Wrapped = llvm::LocalAsMetadata::getIfExists(&From))
    if (auto *AsValue = llvm::MetadataAsValue::getIfExists(From.getContext(), Wrapped))
      for (llvm::User *U : llvm::make_early_inc_range(AsValue->users()))
        if (auto *Declared = llvm::dyn_cast<llvm::DbgDeclareInst>(U)) {
          auto *Copy = llvm::cast<llvm::DbgDeclareInst>(Declared->clone());
          Copy->insertAfter(Declared);
          Copy->replaceVariableLocationOp(&From, &To);
        }
}

/// What GEPOperator::collectOffset fills: steps in bytes by index.
#if LLVM_VERSION_MAJOR >= 20
using OffsetSteps = llvm::SmallMapVector<llvm::Value *, llvm::APInt, 4>;
#else
using OffsetSteps = llvm::MapVector<llvm::Value *, llvm::APInt>;
#endif

/// Calls `callback(const DILocalVariable *, const DILocation *, Value *)` for each local variable that is assigned at
/// `I`; the value is null if it is not one value.
template <typename Callback> void forEachAssignment(llvm::Instruction &I, Callback callback) {
#if LLVM_VERSION_MAJOR >= 19
  for (llvm::DbgVariableRecord &Record : llvm::filterDbgVars(I.getDbgRecordRange()))
    if (!Record.isDbgDeclare())
      callback(Record.getVariable(), Record.getDebugLoc().get(),
               Record.getNumVariableLocationOps() == 1 ? Record.getVariableLocationOp(0) : nullptr);
#endif
  if (auto *Intrinsic = llvm::dyn_cast<llvm::DbgVariableIntrinsic>(&I))
    if (!llvm::isa<llvm::DbgDeclareInst>(Intrinsic))
      callback(Intrinsic->getVariable(), I.getDebugLoc().get(),
               Intrinsic->getNumVariableLocationOps() == 1 ? Intrinsic->getVariableLocationOp(0) : nullptr);
}

/// The source name of the variable that a debug record or intrinsic binds to `V`, or "".
inline llvm::StringRef variableName(llvm::Value *V) {
  auto Found = variablesOf(V);
  return Found.empty() ? "" : Found.front()->getName();
}

} // namespace tracekit
