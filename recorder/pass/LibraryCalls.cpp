// LibraryCalls.cpp: see LibraryCalls.h.
#include "LibraryCalls.h"

#include "Operations.h"
#include "Scalars.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/InlineCost.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace tracekit {

/// In unoptimised instructions: `std::max` has 20, a comparison of two iterators 16.
static constexpr unsigned LargestCallee = 60;

/// `std::reverse_iterator` calls the iterator inside, which calls a function for the pointer inside.
static constexpr unsigned DeepestCalls = 8;

static bool isOfStandardLibrary(const DISubprogram &Source) {
  return (Source.getDirectory() + "/" + Source.getFilename()).str().find("/include/c++/") != std::string::npos;
}

static bool isSmall(Function &F) {
  unsigned Count = count_if(instructions(F), [](const Instruction &I) { return !I.isDebugOrPseudoInst(); });
  SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 1> BackEdges;
  FindFunctionBackedges(F, BackEdges);
  return Count <= LargestCallee && BackEdges.empty() && isInlineViable(F).isSuccess();
}

namespace {

class Inliner {
public:
  Inliner(Function &F, function_ref<bool(const Function &)> MayEnter) : F(F), MayEnter(MayEnter) {}

  void run() {
    for (unsigned Depth = 0; Depth < DeepestCalls; ++Depth) {
      SmallSetVector<CallBase *, 16> Calls;
      for (AllocaInst *Variable : localsOf(F)) {
        SmallVector<CallBase *, 8> Given;
        Choices.clear();
        if (onlyValueOf(Variable->getAllocatedType()) && isKeptByCallsOnly(*Variable, Given))
          Calls.insert(Given.begin(), Given.end());
      }
      if (Calls.empty())
        return;
      for (CallBase *Call : Calls) {
        InlineFunctionInfo Info;
        InlineFunction(*Call, Info, false, nullptr, /*InsertLifetime=*/false);
      }
      promoteScalars(F);
    }
  }

private:
  /// Whether all that keeps a variable in memory are calls that can be inlined, which are appended.
  bool isKeptByCallsOnly(Instruction &Address, SmallVectorImpl<CallBase *> &Calls) {
    return all_of(Address.uses(), [&](const Use &U) {
      auto *By = cast<Instruction>(U.getUser());
      if (auto *Member = dyn_cast<GetElementPtrInst>(By))
        return Member->hasAllZeroIndices() && isKeptByCallsOnly(*Member, Calls);
      if (isa<PHINode>(By)) // what std::max has returned
        return !Choices.insert(By).second || isKeptByCallsOnly(*By, Calls);
      if (isa<StoreInst>(By))
        return U.getOperandNo() == StoreInst::getPointerOperandIndex();
      if (isa<LoadInst, MemTransferInst>(By))
        return true;
      if (auto *Built = dyn_cast<IntrinsicInst>(By))
        return Built->isLifetimeStartOrEnd();
      auto *Call = dyn_cast<CallBase>(By);
      if (!Call || !Call->isArgOperand(&U) || Call->isByValArgument(Call->getArgOperandNo(&U)) || !canInline(*Call))
        return false;
      Calls.push_back(Call);
      return true;
    });
  }

  bool canInline(CallBase &Call) {
    Function *Callee = Call.getCalledFunction();
    if (!Callee || Callee == &F || !Callee->hasLinkOnceODRLinkage())
      return false;
    auto [Known, New] = Fits.try_emplace(Callee, false);
    if (New)
      Known->second = MayEnter(*Callee) && Callee->getSubprogram() && isOfStandardLibrary(*Callee->getSubprogram()) &&
                      isSmall(*Callee);
    return Known->second;
  }

  Function &F;
  function_ref<bool(const Function &)> MayEnter;
  DenseMap<const Function *, bool> Fits;
  SmallPtrSet<Instruction *, 4> Choices; // of one variable's address or another's
};

} // namespace

void inlineLibraryCalls(Function &F, function_ref<bool(const Function &)> MayEnter) {
  if (!callsReturnTwice(F))
    Inliner(F, MayEnter).run();
}

} // namespace tracekit
