/* Names that names.c lacks, or uses for something else. */
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
