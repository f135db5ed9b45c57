// Pointees.h: memory that a function reaches through pointers, by how the source computes the address.
//
// What each iteration stores at one such place, the optimiser may keep in a register, or delete with the block of the
// heap that it is in. Then the run does not show that iterations share it.
#pragma once

#include "Touches.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <memory>
#include <string>
#include <vector>

namespace tracekit {

/// A store of the source.
struct SourceStore {
  const llvm::DILocation *At;                               // has a line
  llvm::SmallVector<const llvm::DISubprogram *, 1> Through; // the functions that are called to come to it

  bool operator==(const SourceStore &Other) const { return At == Other.At && Through == Other.Through; }
};

/// What stores at such a place: an instruction of the function itself, or a call of another one.
struct PointeeStore {
  const llvm::Instruction *By;
  SourceStore Store;
};

/// The bytes that are accessed at one computed address, in one size.
struct Pointee {
  std::string Name;                                    // as C writes it; "" if that is not known
  ObjectTouches At;                                    // bytes from there
  llvm::SmallSetVector<llvm::Value *, 4> Variables;    // that the address is computed from
  llvm::SmallSetVector<llvm::Instruction *, 2> Others; // whose results it is computed from, too
  llvm::SmallSetVector<llvm::Argument *, 2> Arguments; // that it is computed from, too
  bool IsLoaded = false;                               // from memory: it leads away from the arguments themselves
  llvm::SmallVector<PointeeStore, 2> Stores;
  llvm::SmallVector<SourceStore, 2> OfCallers; // those of them that callers of the function are told of, each once
};

/// The pointees of functions that store at them. Those that a function reaches through its arguments are its callers',
/// too: a closure that counts through what it has captured is inlined, and nothing of the count is left in the loop.
class Pointees {
public:
  /// In the order of its text, then those of what it calls.
  const std::vector<Pointee> &of(llvm::Function &F);

private:
  llvm::DenseMap<const llvm::Function *, std::unique_ptr<std::vector<Pointee>>> Known; // empty while it is looked at
};

} // namespace tracekit
