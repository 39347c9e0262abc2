/* The program's side of the argument tests: the caller prints the bytes that it passes and receives. */
#include <stdio.h>

#define NOIPA __attribute__((noipa))

static inline void
tell (const char * kind, const char * function, const char * name, const void * value, unsigned long size)
{
  const unsigned char * bytes = (const unsigned char *) value;
  unsigned long i;

  printf ("%s\t%s\t%s\t", kind, function, name);
  for (i = 0; i != size; i++)
    printf ("%02x", bytes[i]);
  printf ("\n");
}

/* "ARG": the next call of the function passes this value for this parameter. "RET": the last call returned this. */
#define ARG(function, name) tell ("ARG", function, #name, &name, sizeof (name))
#define ARG_BYTES(function, name, size) tell ("ARG", function, #name, &name, size)
#define RET(function, value) tell ("RET", function, "-", &value, sizeof (value))
#define RET_BYTES(function, value, size) tell ("RET", function, "-", &value, size)
