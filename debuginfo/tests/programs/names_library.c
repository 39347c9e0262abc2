/* What names.c has no name for, or another thing of the same name. */
static int token = 1000;
static int cache = 2000;
int shared = 3000;

int
step (int by)
{
  token += by;
  return token;
}

int
library_touch (int by)
{
  cache += by;
  shared += by;
  return step (by) + cache - shared;
}
