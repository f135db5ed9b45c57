// Dependences.cpp: see Dependences.h.
#include "Dependences.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace llvm;

namespace tracekit {
namespace {

struct Node {
  uint8_t Kind; // TK_NODE_*
  Row Index;
};

class Graph {
public:
  Graph(const SegmentedFunction &S, const FunctionRows &Rows, const LoopInfo &LI, const PostDominatorTree &PDT, Unit &U)
      : S(S), Rows(Rows), LI(LI), PDT(PDT), U(U) {}

  void run() {
    for (BasicBlock &BB : *S.F)
      if (inLoop(BB))
        findControlled(BB);
    for (BasicBlock &BB : *S.F)
      if (inLoop(BB))
        for (Instruction &I : BB)
          for (Node To : nodesOf(I)) {
            registerEdges(I, To);
            for (BasicBlock *Branch : Controllers.lookup(&BB))
              add(TK_EDGE_CONTROL, branchNode(Branch), To);
          }
  }

private:
  /// The nodes that stand for an instruction: its operations, itself as a header phi or as a branch.
  SmallVector<Node, 2> nodesOf(Instruction &I);
  void registerEdges(Instruction &Reader, Node To);
  void mergeEdges(PHINode &Phi, Node To, SmallSetVector<BasicBlock *, 8> &Seen);
  void findControlled(BasicBlock &Branch);
  bool inLoop(const BasicBlock &BB) const { return LI.getLoopFor(&BB) && S.OfBlock.count(&BB); }
  Node branchNode(const BasicBlock *Branch) const { return {TK_NODE_BRANCH, lastBlock(S, Rows, Branch)}; }
  void add(uint8_t Kind, Node From, Node To) { U.Edges.push_back({Kind, From.Kind, To.Kind, 0, From.Index, To.Index}); }

  const SegmentedFunction &S;
  const FunctionRows &Rows;
  const LoopInfo &LI;
  const PostDominatorTree &PDT;
  Unit &U;
  DenseMap<const BasicBlock *, SmallVector<BasicBlock *, 2>> Controllers; // branches of the same outermost loop
};

bool isBranch(const Instruction &I) {
  if (auto *Plain = dyn_cast<BranchInst>(&I))
    return Plain->isConditional();
  return isa<SwitchInst, IndirectBrInst>(I);
}

SmallVector<Node, 2> Graph::nodesOf(Instruction &I) {
  SmallVector<Node, 2> Nodes;
  if (auto *Phi = dyn_cast<PHINode>(&I)) {
    if (auto Known = Rows.PhiOf.find(Phi); Known != Rows.PhiOf.end())
      Nodes.push_back({TK_NODE_PHI, Known->second});
  } else if (isBranch(I)) {
    Nodes.push_back(branchNode(I.getParent()));
  } else if (auto Known = Rows.OpsOf.find(&I); Known != Rows.OpsOf.end()) {
    for (unsigned K = 0; K < Known->second.second; ++K)
      if (uint8_t Kind = U.Ops[Known->second.first + K].kind; Kind <= TK_OP_CALL)
        Nodes.push_back({TK_NODE_OP, Known->second.first + K});
  }
  return Nodes;
}

/// The outermost loop around a block: two blocks share a loop if they share this one.
const Loop *outermost(const LoopInfo &LI, const BasicBlock *BB) {
  Loop *L = LI.getLoopFor(BB);
  return L ? L->getOutermostLoop() : nullptr;
}

void Graph::registerEdges(Instruction &Reader, Node To) {
  const Loop *Around = outermost(LI, Reader.getParent());
  SmallPtrSet<Instruction *, 16> Seen;
  SmallSetVector<BasicBlock *, 8> Branches;
  SmallVector<Value *, 16> Open(Reader.op_begin(), Reader.op_end());
  if (auto *Phi = dyn_cast<PHINode>(&Reader))
    mergeEdges(*Phi, To, Branches);
  while (!Open.empty()) {
    auto *I = dyn_cast<Instruction>(Open.pop_back_val());
    if (!I || outermost(LI, I->getParent()) != Around || !Seen.insert(I).second)
      continue;
    SmallVector<Node, 2> Sources = nodesOf(*I);
    if (!Sources.empty() && isa<CallBase>(I) && U.Ops[Sources.back().Index].kind == TK_OP_CALL)
      Sources = {Sources.back()}; // what a call returns comes from the call, not from the copies of its arguments
    for (Node From : Sources)
      add(TK_EDGE_REGISTER, From, To);
    if (!Sources.empty())
      continue;
    Open.append(I->op_begin(), I->op_end());
    if (auto *Phi = dyn_cast<PHINode>(I))
      mergeEdges(*Phi, To, Branches);
  }
}

/// Which value a phi takes is decided by the branches that lead to its predecessors.
void Graph::mergeEdges(PHINode &Phi, Node To, SmallSetVector<BasicBlock *, 8> &Seen) {
  auto Add = [&](BasicBlock *Branch) {
    if (Seen.insert(Branch))
      add(TK_EDGE_CONTROL, branchNode(Branch), To);
  };
  const Loop *Around = outermost(LI, Phi.getParent());
  for (BasicBlock *Before : Phi.blocks()) {
    if (outermost(LI, Before) != Around || !S.OfBlock.count(Before))
      continue;
    if (isBranch(*Before->getTerminator()))
      Add(Before);
    for (BasicBlock *Branch : Controllers.lookup(Before))
      Add(Branch);
  }
}

/// Enters `Branch` as a controller of all blocks on the way from its successors up to its post-dominator.
void Graph::findControlled(BasicBlock &Branch) {
  if (!isBranch(*Branch.getTerminator()))
    return;
  const Loop *Around = outermost(LI, &Branch);
  const DomTreeNode *Own = PDT.getNode(&Branch);
  SmallPtrSet<BasicBlock *, 8> Seen;
  for (BasicBlock *Next : successors(&Branch))
    for (const DomTreeNode *At = PDT.getNode(Next); At && Own && At != Own->getIDom() && At->getBlock();
         At = At->getIDom()) {
      if (!Seen.insert(At->getBlock()).second)
        break;
      if (outermost(LI, At->getBlock()) == Around && S.OfBlock.count(At->getBlock()))
        Controllers[At->getBlock()].push_back(&Branch);
    }
}

} // namespace

void describeDependences(const SegmentedFunction &S, const FunctionRows &Rows, const LoopInfo &LI,
                         const PostDominatorTree &PDT, Unit &U) {
  Row First = U.Edges.size();
  Graph(S, Rows, LI, PDT, U).run();
  U.Functions[Rows.Function].first_edge = First;
  U.Functions[Rows.Function].edges = U.Edges.size() - First;
}

} // namespace tracekit
