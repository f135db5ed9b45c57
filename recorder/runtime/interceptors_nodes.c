/* Trees and lists of libstdc++ (std::map, std::set, std::list), whose nodes its library links.
 *
 * The real function does the work. What it reads and writes is found first, by the same steps on a plan of what they
 * come to; then its loads are recorded, and its stores: all of them are one execution of the call. Trees are red and
 * black (Cormen, Leiserson, Rivest, Stein: Introduction to Algorithms, chapter 13), with a header: its parent is the
 * root, its children are the first node and the last. */
#include "preload_library.h"

#include <stdbool.h>

enum { RED, BLACK };
enum { LEFT, RIGHT };

struct node { /* std::_Rb_tree_node_base */
    int color;
    struct node *parent, *child[2];
};

struct link { /* std::__detail::_List_node_base */
    struct link *next, *prev;
};

/* -- what a function will read and write -------------------------------------------------------- */

#define MOST 512 /* a tree of 2^48 nodes is 96 deep, and two levels take five */

struct plan {
    struct place {
        const void *at;
        uint64_t value;
        uint8_t size;
        bool is_read, is_written;
    } places[MOST];
    int count;
    bool is_full; /* the tree is none: nothing is known of it */
};

static struct place *place_at(struct plan *plan, const void *at, uint8_t size)
{
    for (int number = plan->count; number-- > 0;)
        if (plan->places[number].at == at)
            return &plan->places[number];
    plan->is_full |= plan->count == MOST - 1;
    struct place *place = &plan->places[plan->is_full ? MOST - 1 : plan->count++];
    *place = (struct place){at, 0, size, false, false};
    memcpy(&place->value, at, size);
    return place;
}

static uint64_t look(struct plan *plan, const void *at, uint8_t size)
{
    struct place *place = place_at(plan, at, size);
    place->is_read |= !place->is_written;
    return place->value;
}

static void put(struct plan *plan, const void *at, uint8_t size, uint64_t value)
{
    struct place *place = place_at(plan, at, size);
    place->value = value;
    place->is_written = true;
}

#define LOOK(plan, field) ((__typeof__(field))look(plan, &(field), sizeof(field)))
#define PUT(plan, field, value) put(plan, &(field), sizeof(field), (uint64_t)(value))

static void record(const struct plan *plan)
{
    if (plan->is_full)
        return;
    for (int number = 0; number < plan->count; number++)
        if (plan->places[number].is_read)
            tk_library_load(plan->places[number].at, plan->places[number].size);
    for (int number = 0; number < plan->count; number++)
        if (plan->places[number].is_written)
            tk_library_store(plan->places[number].at, plan->places[number].size);
}

/* -- trees -------------------------------------------------------------------------------------- */

static bool is_black(struct plan *plan, const struct node *node)
{
    return !node || LOOK(plan, node->color) == BLACK;
}

/* A subtree's root goes down to a `side`, its child on the other one comes up. */
static void rotate(struct plan *plan, struct node *down, int side, struct node *header)
{
    struct node *up = LOOK(plan, down->child[!side]), *between = LOOK(plan, up->child[side]);
    PUT(plan, down->child[!side], between);
    if (between)
        PUT(plan, between->parent, down);
    struct node *above = LOOK(plan, down->parent);
    PUT(plan, up->parent, above);
    if (down == LOOK(plan, header->parent))
        PUT(plan, header->parent, up);
    else
        PUT(plan, above->child[down == LOOK(plan, above->child[side]) ? side : !side], up);
    PUT(plan, up->child[side], down);
    PUT(plan, down->parent, up);
}

static void plan_insertion(struct plan *plan, bool is_left, struct node *node, struct node *above, struct node *header)
{
    PUT(plan, node->parent, above);
    PUT(plan, node->child[LEFT], NULL);
    PUT(plan, node->child[RIGHT], NULL);
    PUT(plan, node->color, RED);
    PUT(plan, above->child[is_left ? LEFT : RIGHT], node);
    if (is_left && above == header) {
        PUT(plan, header->parent, node);
        PUT(plan, header->child[RIGHT], node);
    } else if (above == LOOK(plan, header->child[is_left ? LEFT : RIGHT])) {
        PUT(plan, header->child[is_left ? LEFT : RIGHT], node);
    }
    while (!plan->is_full && node != LOOK(plan, header->parent)) {
        above = LOOK(plan, node->parent);
        if (LOOK(plan, above->color) != RED)
            break;
        struct node *top = LOOK(plan, above->parent);
        int side = above == LOOK(plan, top->child[LEFT]) ? LEFT : RIGHT;
        struct node *uncle = LOOK(plan, top->child[!side]);
        if (!is_black(plan, uncle)) {
            PUT(plan, above->color, BLACK);
            PUT(plan, uncle->color, BLACK);
            PUT(plan, top->color, RED);
            node = top;
            continue;
        }
        if (node == LOOK(plan, above->child[!side])) {
            node = above;
            rotate(plan, node, side, header);
            above = LOOK(plan, node->parent);
        }
        PUT(plan, above->color, BLACK);
        PUT(plan, top->color, RED);
        rotate(plan, top, !side, header);
    }
    PUT(plan, LOOK(plan, header->parent)->color, BLACK);
}

/* Below `above`, on the side where `node` is (or nothing), a black node is missing. */
static void plan_balance(struct plan *plan, struct node *node, struct node *above, struct node *header)
{
    while (!plan->is_full && node != LOOK(plan, header->parent) && is_black(plan, node)) {
        int side = node == LOOK(plan, above->child[LEFT]) ? LEFT : RIGHT;
        struct node *sibling = LOOK(plan, above->child[!side]);
        if (LOOK(plan, sibling->color) == RED) {
            PUT(plan, sibling->color, BLACK);
            PUT(plan, above->color, RED);
            rotate(plan, above, side, header);
            sibling = LOOK(plan, above->child[!side]);
        }
        if (is_black(plan, LOOK(plan, sibling->child[side])) && is_black(plan, LOOK(plan, sibling->child[!side]))) {
            PUT(plan, sibling->color, RED);
            node = above;
            above = LOOK(plan, above->parent);
            continue;
        }
        if (is_black(plan, LOOK(plan, sibling->child[!side]))) {
            PUT(plan, LOOK(plan, sibling->child[side])->color, BLACK);
            PUT(plan, sibling->color, RED);
            rotate(plan, sibling, !side, header);
            sibling = LOOK(plan, above->child[!side]);
        }
        PUT(plan, sibling->color, LOOK(plan, above->color));
        PUT(plan, above->color, BLACK);
        struct node *outer = LOOK(plan, sibling->child[!side]);
        if (outer)
            PUT(plan, outer->color, BLACK);
        rotate(plan, above, side, header);
        break;
    }
    if (node)
        PUT(plan, node->color, BLACK);
}

/* What leads to `old` from above leads to `new`. */
static void replace(struct plan *plan, const struct node *old, struct node *new, struct node *header)
{
    if (old == LOOK(plan, header->parent)) {
        PUT(plan, header->parent, new);
    } else {
        struct node *above = LOOK(plan, old->parent);
        PUT(plan, above->child[old == LOOK(plan, above->child[LEFT]) ? LEFT : RIGHT], new);
    }
}

static struct node *farthest(struct plan *plan, struct node *node, int side)
{
    for (struct node *next; !plan->is_full && (next = LOOK(plan, node->child[side]));)
        node = next;
    return node;
}

/* With two children, the next node takes the place of the one that goes, and its colour. */
static void plan_removal(struct plan *plan, struct node *gone, struct node *header)
{
    struct node *left = LOOK(plan, gone->child[LEFT]), *right = left ? LOOK(plan, gone->child[RIGHT]) : NULL;
    struct node *below, *above;
    int color = LOOK(plan, gone->color);
    if (right) {
        struct node *next = farthest(plan, right, LEFT);
        below = LOOK(plan, next->child[RIGHT]);
        PUT(plan, left->parent, next);
        PUT(plan, next->child[LEFT], left);
        above = next;
        if (next != right) {
            above = LOOK(plan, next->parent);
            if (below)
                PUT(plan, below->parent, above);
            PUT(plan, above->child[LEFT], below);
            PUT(plan, next->child[RIGHT], right);
            PUT(plan, right->parent, next);
        }
        replace(plan, gone, next, header);
        PUT(plan, next->parent, LOOK(plan, gone->parent));
        int taken = LOOK(plan, next->color);
        PUT(plan, next->color, color);
        PUT(plan, gone->color, taken);
        color = taken;
    } else {
        below = left ? left : LOOK(plan, gone->child[RIGHT]);
        above = LOOK(plan, gone->parent);
        if (below)
            PUT(plan, below->parent, above);
        replace(plan, gone, below, header);
        for (int side = LEFT; side <= RIGHT; side++)
            if (gone == LOOK(plan, header->child[side])) {
                struct node *inner = LOOK(plan, gone->child[!side]);
                PUT(plan, header->child[side], inner ? farthest(plan, below, side) : above);
            }
    }
    if (color != RED)
        plan_balance(plan, below, above, header);
}

/* The node behind one (RIGHT), or before it. */
static void plan_step(struct plan *plan, struct node *node, int side)
{
    if (side == LEFT && LOOK(plan, node->color) == RED) {
        struct node *root = LOOK(plan, node->parent);
        if (node == LOOK(plan, root->parent)) { /* the header, which is behind the last */
            (void)LOOK(plan, node->child[RIGHT]);
            return;
        }
    }
    struct node *inner = LOOK(plan, node->child[side]);
    if (inner) {
        farthest(plan, inner, !side);
        return;
    }
    struct node *above = LOOK(plan, node->parent);
    while (!plan->is_full && node == LOOK(plan, above->child[side])) {
        node = above;
        above = LOOK(plan, above->parent);
    }
    if (side == RIGHT) /* the last node of a tree whose root it is */
        (void)LOOK(plan, node->child[RIGHT]);
}

/* -- lists -------------------------------------------------------------------------------------- */

/* Two links become neighbours. */
static void join(struct plan *plan, struct link *first, struct link *then)
{
    PUT(plan, first->next, then);
    PUT(plan, then->prev, first);
}

static void plan_hook(struct plan *plan, struct link *link, struct link *behind)
{
    join(plan, LOOK(plan, behind->prev), link);
    join(plan, link, behind);
}

static void plan_unhook(struct plan *plan, struct link *link)
{
    join(plan, LOOK(plan, link->prev), LOOK(plan, link->next));
}

static void plan_transfer(struct plan *plan, struct link *to, struct link *first, struct link *behind)
{
    if (to == behind)
        return;
    struct link *before = LOOK(plan, first->prev), *last = LOOK(plan, behind->prev), *ahead = LOOK(plan, to->prev);
    join(plan, before, behind);
    join(plan, last, to);
    join(plan, ahead, first);
}

/* The nodes of a list, or none of an empty one, get another header. */
static void adopt(struct plan *plan, struct link *to, struct link *first, struct link *last, struct link *from)
{
    join(plan, first == from ? to : last, to);
    join(plan, to, first == from ? to : first);
}

static void plan_swap(struct plan *plan, struct link *one, struct link *other)
{
    struct link *ends[4] = {LOOK(plan, one->next), NULL, LOOK(plan, other->next), NULL};
    if (ends[0] == one && ends[2] == other)
        return;
    ends[1] = ends[0] == one ? one : LOOK(plan, one->prev);
    ends[3] = ends[2] == other ? other : LOOK(plan, other->prev);
    adopt(plan, one, ends[2], ends[3], other);
    adopt(plan, other, ends[0], ends[1], one);
}

/* Of a list, of which nobody knows how long it is. */
static void record_reversal(const struct link *list)
{
    const struct link *link = list;
    do {
        tk_library_load(link, sizeof *link);
        link = link->next;
    } while (link != list);
    do {
        tk_library_store(link, sizeof *link);
        link = link->next;
    } while (link != list);
}

/* -- the functions ------------------------------------------------------------------------------ */

#define PLANNED(function, ...) \
    struct plan plan; \
    plan.count = plan.is_full = 0; \
    function(&plan, __VA_ARGS__); \
    record(&plan)

#define WRAP_STEP(name, side) \
    struct node *name(struct node *node); \
    TK_WRAP_BEFORE(struct node *, name, (struct node * node), (node), PLANNED(plan_step, node, side))

WRAP_STEP(_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base, RIGHT)
WRAP_STEP(_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base, RIGHT)
WRAP_STEP(_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base, LEFT)
WRAP_STEP(_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base, LEFT)

#define WRAP_VOID(name, parameters, arguments, accesses) \
    void name parameters; \
    TK_EXPORT void name parameters \
    { \
        if (TK_IS_RECORDED()) { \
            accesses; \
        } \
        TK_REAL(name) arguments; \
    }

WRAP_VOID(_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_,
          (bool is_left, struct node *node, struct node *above, struct node *header), (is_left, node, above, header),
          PLANNED(plan_insertion, is_left, node, above, header))

struct node *_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(struct node *gone, struct node *header);
TK_WRAP_BEFORE(struct node *, _ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_,
               (struct node * gone, struct node *header), (gone, header), PLANNED(plan_removal, gone, header))

WRAP_VOID(_ZNSt8__detail15_List_node_base7_M_hookEPS0_, (struct link * link, struct link *behind), (link, behind),
          PLANNED(plan_hook, link, behind))
WRAP_VOID(_ZNSt8__detail15_List_node_base9_M_unhookEv, (struct link * link), (link), PLANNED(plan_unhook, link))
WRAP_VOID(_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_,
          (struct link * to, struct link *first, struct link *behind), (to, first, behind),
          PLANNED(plan_transfer, to, first, behind))
WRAP_VOID(_ZNSt8__detail15_List_node_base4swapERS0_S1_, (struct link * one, struct link *other), (one, other),
          PLANNED(plan_swap, one, other))
WRAP_VOID(_ZNSt8__detail15_List_node_base10_M_reverseEv, (struct link * list), (list), record_reversal(list))
