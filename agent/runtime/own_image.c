/* Replacements of the self-contained runtime in addition to those of
 * interpose.c: they show unwinders this image, which no linker knows, so that
 * exceptions pass through the return trampoline; and they see what musl's
 * stdio writes.
 *
 * Rules of this file: as in interpose.c.
 */
#define _GNU_SOURCE
#include "runtime.h"

#include <link.h>
#include <stdio.h>

typedef int (* each_object) (struct dl_phdr_info *, size_t, void *);

/* <dlfcn.h>, since glibc 2.35 */
struct found_object
{
  unsigned long long flags;
  void * map_start;
  void * map_end;
  void * link_map;
  void * eh_frame;
};

/* musl's stdio data of a file. */
struct musl_file
{
  unsigned flags;
  unsigned char * rpos, * rend;
  int (* close) (void *);
  unsigned char * wend, * wpos;
  unsigned char * must_be_zero;
  unsigned char * wbase;
  void * functions[3];
  unsigned char * buffer;
  size_t buffer_size;
  void * previous, * next;
  int fd;
};

int (* hs_original_dl_iterate_phdr) (each_object, void *);
int (* hs_original__dl_find_object) (void *, struct found_object *);
size_t (* hs_original___stdio_write) (struct musl_file *, const unsigned char *, size_t);

struct listing
{
  each_object callback;
  void * argument;
  struct dl_phdr_info last;
  size_t size;
};

static int
list_one (struct dl_phdr_info * info, size_t size, void * argument)
{
  struct listing * listing = argument;
  listing->size = size;
  if (size >= sizeof *info)
  {
    listing->last.dlpi_adds = info->dlpi_adds;
    listing->last.dlpi_subs = info->dlpi_subs;
  }
  return listing->callback (info, size, listing->argument);
}

static const ElfW (Ehdr) *
own_header (void)
{
  return (const ElfW (Ehdr) *) hs_runtime.own_base;
}

/* After the program's own objects, this one. */
int
hs_dl_iterate_phdr (each_object callback, void * argument)
{
  struct listing listing = { .callback = callback, .argument = argument };
  int result = hs_original_dl_iterate_phdr (list_one, &listing);
  if (result != 0)
    return result;
  const ElfW (Ehdr) * header = own_header ();
  struct dl_phdr_info * info = &listing.last;
  info->dlpi_addr = (ElfW (Addr)) header;
  info->dlpi_name = "hindsight-runtime";
  info->dlpi_phdr = (const ElfW (Phdr) *) ((const char *) header + header->e_phoff);
  info->dlpi_phnum = header->e_phnum;
  return callback (info, listing.size != 0 ? listing.size : sizeof *info, argument);
}

int
hs_dl_find_object (void * pc, struct found_object * found)
{
  const ElfW (Ehdr) * header = own_header ();
  if ((uint64_t) pc - hs_runtime.own_base >= hs_runtime.own_size)
    return hs_original__dl_find_object (pc, found);
  const ElfW (Phdr) * segments =
      (const ElfW (Phdr) *) ((const char *) header + header->e_phoff);
  found->flags = 0;
  found->map_start = (void *) hs_runtime.own_base;
  found->map_end = (void *) (hs_runtime.own_base + hs_runtime.own_size);
  found->link_map = NULL;
  found->eh_frame = NULL;
  for (unsigned n = 0; n != header->e_phnum; n++)
    if (segments[n].p_type == PT_GNU_EH_FRAME)
      found->eh_frame = (void *) (hs_runtime.own_base + segments[n].p_vaddr);
  return 0;
}

/* Writes what is buffered, then `bytes`; returns `length` only if all of it
 * was written. */
size_t
hs_stdio_write (struct musl_file * file, const unsigned char * bytes, size_t length)
{
  int fd = file->fd;
  const unsigned char * buffered = file->wbase;
  size_t pending = (size_t) (file->wpos - file->wbase);
  size_t result = hs_original___stdio_write (file, bytes, length);
  if ((fd == 1 || fd == 2) && result == length)
  {
    hs_record_output (fd, (const char *) buffered, pending);
    hs_record_output (fd, (const char *) bytes, length);
  }
  return result;
}
