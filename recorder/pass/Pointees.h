// Pointees.h: memory that a function reaches through pointers, by how the source computes the address.
//
// What each iteration stores at one such place, the optimiser may keep in a register, or delete with the block of the
// heap that it is in. Then the run does not show that iterations share it.
#pragma once

#include "Touches.h"

#include "llvm/ADT/SetVector.h"

#include <string>
#include <vector>

namespace tracekit {

/// The bytes that are accessed at one computed address, in one size.
struct Pointee {
  std::string Name;                                       // as C writes it; "" if that is not known
  ObjectTouches At;                                       // bytes from there
  llvm::SmallSetVector<llvm::Value *, 4> Variables;       // that the address is computed from
  llvm::SmallSetVector<llvm::Instruction *, 2> Others;    // whose results it is computed from, too
  llvm::SmallVector<const llvm::Instruction *, 2> Stores; // with a line
};

/// The pointees of one function, in the order of its text.
std::vector<Pointee> pointeesOf(llvm::Function &F);

} // namespace tracekit
