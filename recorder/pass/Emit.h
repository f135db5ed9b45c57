// Emit.h: the code that writes a function's records (docs/internals/pass.md).
#pragma once

#include "Regions.h"

namespace tracekit {

/// The runtime's symbols as one module declares them.
class Runtime {
public:
  explicit Runtime(llvm::Module &M);

  llvm::GlobalVariable *State;  // __tk_state, thread-local
  llvm::FunctionCallee Flip;    // void __tk_flip(void), preserve_most
  llvm::FunctionCallee Landing; // void __tk_landing(void *frame)
  llvm::StructType *StateType;  // its first fields: pos, limit

  /// __tk_activations, thread-local: the innermost activation. Declared where it is first asked for.
  llvm::GlobalVariable *activations(llvm::Module &M);
  /// void __tk_watched(layout, activation, enters), preserve_most.
  llvm::FunctionCallee watched(llvm::Module &M);
  /// void __tk_resumed(activation, lives): control came through a door (Twins.h); null: the trace knows it by FRAME.
  llvm::FunctionCallee resumed(llvm::Module &M);
  /// void __tk_unwound(frame): an exception has come to a clean body.
  llvm::FunctionCallee unwound(llvm::Module &M);
  /// void __tk_returned_again(frame, below): setjmp has, in a clean body; `below` is the innermost activation then.
  llvm::FunctionCallee returnedAgain(llvm::Module &M);

private:
  llvm::GlobalVariable *Activations = nullptr;
};

struct Resumes;
class Twin;

/// Makes `S.F` write a record for each path it runs; byte k of `Ids` is the id of path k. With `Keep` it keeps its
/// activations in memory, too;
/// with `Other` there is a clean body beside it.
void emit(const SegmentedFunction &S, const Regions &Paths, Runtime &R, llvm::GlobalVariable *Ids, const Resumes *Keep,
          Twin *Other);

} // namespace tracekit
