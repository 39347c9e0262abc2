// Usage: tree NODES ROUNDS SEED. Inserts NODES allocated nodes into a binary tree, then searches for all of them in further rounds.
#include <stdio.h>
#include <stdlib.h>

struct node {
  unsigned key;
  struct node *less, *more;
};

static unsigned state;

__attribute__((noinline, noclone)) unsigned next(void) { return state = state * 1664525u + 1013904223u; }

__attribute__((noinline, noclone)) struct node *put(struct node *node, unsigned key) {
  if (!node) {
    node = calloc(1, sizeof *node);
    node->key = key;
  } else if (key < node->key) {
    node->less = put(node->less, key);
  } else {
    node->more = put(node->more, key);
  }
  return node;
}

__attribute__((noinline, noclone)) int depth_of(struct node *node, unsigned key) {
  if (!node || node->key == key) return 1;
  return 1 + depth_of(key < node->key ? node->less : node->more, key);
}

int main(int count, char **words) {
  if (count != 4) return 2;
  unsigned nodes = strtoul(words[1], 0, 10), rounds = strtoul(words[2], 0, 10), seed = strtoul(words[3], 0, 10);
  struct node *root = 0;
  long sum = 0;
  state = seed;
  for (unsigned i = 0; i < nodes; i++) root = put(root, next() >> 4);
  for (unsigned round = 0; round < rounds; round++) {
    state = seed;
    for (unsigned i = 0; i < nodes; i++) sum += depth_of(root, next() >> 4);
  }
  printf("%ld\n", sum);
  return 0;
}
