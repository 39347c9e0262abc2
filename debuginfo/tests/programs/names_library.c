/* What names.c has no name for, or another thing of the same name. */
static int token = 1000;
static int hoard = 2000;
int shared = 3000;

int
stride (int by)
{
  token += by;
  return token;
}

int
library_touch (int by)
{
  hoard += by;
  shared += by;
  return stride (by) + hoard - shared;
}
