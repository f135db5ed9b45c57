// Twins.h: the clean body of a function, which runs while no window is open (docs/internals/pass.md, "Windows").
//
// The function itself keeps the clean body, its twin gets the instrumented one. Where a window may open, the clean body
// tests one byte: at its entry, behind calls, at landings and at headers of loops that contain loops. These are doors:
// through them control goes over into the twin, which is given what is alive there.
#pragma once

#include "Resumes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace tracekit {

class Twin {
public:
  /// Whether `S.F` can have two bodies.
  static bool isPossible(const SegmentedFunction &S);

  /// Looks for the doors of `S`, which is described and not changed yet, and counts the iterations of loops in
  /// registers.
  Twin(SegmentedFunction &S, const Regions &Paths, const Resumes &Keep, const llvm::DominatorTree &DT,
       const llvm::LoopInfo &LI);

  /// Makes the two bodies; `S` is the twin's from here on.
  void split(Regions &Paths);
  /// Opens the doors, once the twin is instrumented. `Armed` is the byte that is tested.
  /// `Shadows` hold words of the activation, by their place in it, until it comes into memory.
  void connect(Runtime &R, llvm::GlobalVariable *Ids, llvm::GlobalVariable *Armed, llvm::Value *Activation,
               const llvm::MapVector<unsigned, llvm::AllocaInst *> &Shadows);

  bool isDoor(unsigned K) const { return Doors.count(K); }
  /// Control that comes through the door of segment `K` goes on here.
  void opens(unsigned K, llvm::BasicBlock *Target) { Doors.find(K)->second.Target = Target; }
  /// Segment `K` begins a loop in which the twin may give control back.
  bool isWayBack(unsigned K) const { return WaysBack.count(K); }
  /// Before `Position` segment `K` begins. Returns where the twin leaves then, before the end of its block.
  llvm::Instruction *leavesAt(unsigned K, llvm::Instruction *Position);
  /// The number of the iteration of the loop with this header, counting from 0; null: it has no door.
  llvm::Value *iteration(const llvm::BasicBlock *Header) const { return Counters.lookup(Header); }

private:
  struct Door {
    unsigned Number = 0;                      // from 0
    unsigned Behind = 0;                      // the segment that has run
    unsigned BehindAtFirst = 0;               // the same in the first iteration, of the header of a loop
    const llvm::BasicBlock *Header = nullptr; // null: it is none
    bool Landing = false;
    const llvm::Instruction *Setjmp = nullptr;            // behind this one
    llvm::SmallVector<const Operation *, 8> Registers;    // the operations that define those that hold here
    llvm::SmallVector<const Operation *, 4> Objects;      // that are alive, by their STACK_ALLOC
    llvm::SmallVector<const llvm::BasicBlock *, 4> Loops; // headers of those that contain the door
    llvm::BasicBlock *Target = nullptr, *Filling = nullptr;
    llvm::Instruction *Clean = nullptr;                     // where the clean body tests
    llvm::SmallVector<llvm::Instruction *, 16> Lives;       // that the clean body stores
    llvm::SmallVector<uint64_t, 16> Places;                 // where, in bytes
    llvm::SmallSetVector<llvm::Instruction *, 16> Derived;  // that follow from others, each behind its operands
    llvm::SmallPtrSet<const llvm::Argument *, 8> Arguments; // that are alive, too
  };

  /// A loop that control enters once at most in an activation. If the clean body has gone through a door in it, the
  /// twin may give control back at the header: what the loop does not change is still as it was.
  struct WayBack {
    const llvm::BasicBlock *Header = nullptr;
    llvm::SmallVector<unsigned, 16> From;         // the segments of its doors
    llvm::SmallVector<llvm::PHINode *, 8> Values; // that differ by iteration
    llvm::SmallVector<uint64_t, 8> Places;        // where they are handed back, in bytes
    uint32_t Number = 0;                          // what stands in place of the door's number then
    llvm::BasicBlock *Behind = nullptr;           // where the twin goes on if it does not
    llvm::Instruction *Closed = nullptr;          // the end of the block to which it goes if no window is open
    llvm::BasicBlock *Leave = nullptr;            // where it leaves
    llvm::Instruction *Leaving = nullptr;         // the last instruction of that
    llvm::BasicBlock *Clean = nullptr;            // where the clean body takes over
  };

  /// A call of the clean body.
  struct Site {
    llvm::Instruction *Call;
    unsigned Segment;
    llvm::SmallVector<const Operation *, 4> Objects; // that are alive during the call
  };

  void findDoors(const llvm::DominatorTree &DT, const llvm::LoopInfo &LI);
  void addDoor(unsigned K, unsigned Behind, const llvm::DominatorTree &DT, const llvm::LoopInfo &LI);
  void findObjects();
  void dropRegisters();
  void count(const llvm::BasicBlock *Header);
  void copyTables();
  static bool isDynamic(const Operation &Alloc) { return Alloc.Flags & TK_OPFLAG_DYNAMIC_SIZE; }
  /// Whether a STACK_ALLOC's object has no place that is the same in each of the function's frames.
  static bool isMoving(const Operation &Alloc) { return isDynamic(Alloc) || llvm::isa<llvm::Argument>(Alloc.Address); }
  void noteMovingObjects(llvm::Function &Clean);
  llvm::BasicBlock *makeHall();
  void fillCommon(llvm::Value *Activation);
  void fillRegisters(llvm::IRBuilder<> &B, llvm::Value *Here);
  void fillObjects(llvm::IRBuilder<> &B, llvm::Value *Here);
  llvm::GlobalVariable *aliveObjects();
  void fill(Door &D, Runtime &R, llvm::Value *Activation, const llvm::MapVector<unsigned, llvm::AllocaInst *> &Shadows);
  llvm::DenseMap<llvm::Value *, llvm::SmallVector<Door *, 4>> wanted();
  void findParts(const Operation *Op, llvm::Value *Word);
  void findLives();
  void findArguments();
  void deriveLives(Door &D);
  void placeLives();
  void findCommon();
  void fillMixed(Door &D, llvm::Value *Activation);
  static Door needed(const Door &D, llvm::ArrayRef<const llvm::Value *> Roots);
  Door neededByAll();
  Door neededAt(const Door &D);
  uint64_t place(llvm::Type *T, uint64_t &End);
  void takeLives(const Door &D, llvm::Instruction *Position,
                 const llvm::MapVector<llvm::Instruction *, llvm::AllocaInst *> &Slots);
  void takeLives(llvm::SmallVectorImpl<llvm::AllocaInst *> &Slots);
  void shareMemory(const llvm::MapVector<llvm::Instruction *, llvm::AllocaInst *> &Slots);
  void promote(llvm::SmallVectorImpl<llvm::AllocaInst *> &Slots);
  void test(llvm::Instruction *Position, llvm::BasicBlock *Cold, llvm::GlobalVariable *Armed);
  llvm::Value *frameToResume(llvm::IRBuilder<> &B);
  llvm::Value *returnAgain(const Door &D, Runtime &R, llvm::Value *Lives, llvm::AllocaInst *Below);
  void openDoors(Runtime &R, llvm::GlobalVariable *Armed);
  void openEntry(llvm::GlobalVariable *Armed);
  void findWaysBack(const llvm::LoopInfo &LI);
  void openWaysBack(Runtime &R, llvm::GlobalVariable *Armed);
  void giveBack(WayBack &Way, Runtime &R, llvm::GlobalVariable *Armed);
  void takeBack(WayBack &Way, llvm::Value *Lives);
  WayBack *wayBackFrom(unsigned K);
  void markSites(llvm::GlobalVariable *Ids);
  void markSite(llvm::Instruction *Call, llvm::Constant *Path, llvm::ArrayRef<const Operation *> Objects);
  llvm::CallInst *callTwin(llvm::IRBuilder<> &B, llvm::Value *Lives, const Door *From);
  llvm::DebugLoc noLine(llvm::Function &F) const;
  /// A pointer as it is, of which the compiler does not see where it comes from.
  ///
  /// InstCombine looks at all uses of a pointer for each of them: with what a hundred doors keep of a hundred objects
  /// in one activation it takes half a minute for a function, unless each door has a pointer of its own.
  static llvm::Value *hidden(llvm::IRBuilder<> &B, llvm::Value *Pointer);

  SegmentedFunction &S;
  const Regions &Paths;
  const Resumes &Keep;
  llvm::Function &F;              // clean
  llvm::Function *Body = nullptr; // instrumented
  llvm::ValueToValueMapTy CleanOf;
  llvm::MapVector<unsigned, Door> Doors;       // by segment
  llvm::MapVector<unsigned, WayBack> WaysBack; // by the header's first segment
  llvm::DenseMap<const llvm::BasicBlock *, llvm::PHINode *> Counters;
  llvm::SmallVector<Site, 16> Sites;
  llvm::DenseMap<const Operation *, llvm::AllocaInst *> Notes; // where the clean body says where a moving object is
  llvm::SmallVector<std::pair<llvm::GlobalVariable *, llvm::GlobalVariable *>, 2> Tables; // of addresses of blocks
  uint64_t LivesEnd = 8;              // bytes that doors hand over, at most
  llvm::Align Strictest{8};           // of what they hand over
  bool Shared = false;                // each value has one place, whatever the door, and the twin keeps it there
  llvm::BasicBlock *Inside = nullptr; // the twin's own first block
  llvm::SwitchInst *Choice = nullptr;
  llvm::BasicBlock *Common = nullptr; // what all doors do alike; ends with the choice
  llvm::MapVector<const Operation *, llvm::SmallVector<llvm::Value *, 2>> Parts; // filled in there: what the word is of
  Door All; // the lives of all doors, and what follows from them at each where it is alive
  llvm::SmallPtrSet<const llvm::Value *, 16> Mixed; // what follows from others at some doors only
};

} // namespace tracekit
