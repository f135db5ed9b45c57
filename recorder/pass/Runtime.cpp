// Runtime.cpp: the runtime's symbols as a module declares them; see Emit.h.
#include "Emit.h"

#include "llvm/IR/Module.h"

using namespace llvm;

namespace tracekit {

Runtime::Runtime(Module &M) {
  LLVMContext &C = M.getContext();
  Type *Pointer = PointerType::getUnqual(C);
  StateType = StructType::get(Pointer, Pointer, Pointer, Pointer);
  State = M.getGlobalVariable("__tk_state");
  if (!State) // weak would let the linker leave it undefined; the runtime in every image defines it
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

GlobalVariable *Runtime::activations(Module &M) {
  if (!Activations)
    Activations = M.getGlobalVariable("__tk_activations");
  if (!Activations)
    Activations = new GlobalVariable(M, PointerType::getUnqual(M.getContext()), false, GlobalValue::ExternalLinkage,
                                     nullptr, "__tk_activations", nullptr, GlobalValue::InitialExecTLSModel);
  return Activations;
}

FunctionCallee Runtime::watched(Module &M) {
  LLVMContext &C = M.getContext();
  AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
  Type *Pointer = PointerType::getUnqual(C);
  FunctionCallee Callee =
      M.getOrInsertFunction("__tk_watched", NoUnwind, Type::getVoidTy(C), Pointer, Pointer, Type::getInt32Ty(C));
  auto *F = cast<Function>(Callee.getCallee());
  F->setCallingConv(CallingConv::PreserveMost);
  F->addFnAttr(Attribute::Cold);
  F->setVisibility(GlobalValue::HiddenVisibility);
  F->setDSOLocal(true);
  return Callee;
}

FunctionCallee Runtime::resumed(Module &M) {
  LLVMContext &C = M.getContext();
  AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
  Type *Pointer = PointerType::getUnqual(C);
  FunctionCallee Callee = M.getOrInsertFunction("__tk_resumed", NoUnwind, Type::getVoidTy(C), Pointer, Pointer);
  auto *F = cast<Function>(Callee.getCallee());
  F->addFnAttr(Attribute::Cold);
  F->setVisibility(GlobalValue::HiddenVisibility);
  F->setDSOLocal(true);
  return Callee;
}

FunctionCallee Runtime::unwound(Module &M) {
  LLVMContext &C = M.getContext();
  AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
  FunctionCallee Callee =
      M.getOrInsertFunction("__tk_unwound", NoUnwind, Type::getVoidTy(C), PointerType::getUnqual(C));
  auto *F = cast<Function>(Callee.getCallee());
  F->addFnAttr(Attribute::Cold);
  F->setVisibility(GlobalValue::HiddenVisibility);
  F->setDSOLocal(true);
  return Callee;
}

FunctionCallee Runtime::returnedAgain(Module &M) {
  LLVMContext &C = M.getContext();
  AttributeList NoUnwind = AttributeList::get(C, AttributeList::FunctionIndex, {Attribute::NoUnwind});
  Type *Pointer = PointerType::getUnqual(C);
  FunctionCallee Callee = M.getOrInsertFunction("__tk_returned_again", NoUnwind, Type::getVoidTy(C), Pointer, Pointer);
  auto *F = cast<Function>(Callee.getCallee());
  F->addFnAttr(Attribute::Cold);
  F->setVisibility(GlobalValue::HiddenVisibility);
  F->setDSOLocal(true);
  return Callee;
}

} // namespace tracekit
