! Arguments that only their callers still know: what a reference led to, a computed number, an array without its length.
module by_reference
  implicit none
  integer, volatile :: sink
contains
  subroutine in_copy(z) bind(c)
    integer, value :: z
    sink = sink + z
  end subroutine
  subroutine in_computed(z) bind(c)
    integer, value :: z
    sink = sink - z
  end subroutine
  subroutine in_row(z)
    integer, intent(in) :: z
    sink = sink + 2*z
  end subroutine
  subroutine copy(a)
    integer, intent(in) :: a
    integer :: mine, twice
    mine = a
    twice = a*2
    call in_copy(1)
    sink = sink + 1
  end subroutine
  subroutine computed(b) bind(c)
    real(8), value :: b
    call in_computed(2)
    sink = sink + 1
  end subroutine
  subroutine row(x, n, s)
    integer, intent(in) :: n
    real(8), intent(in) :: x(n)
    character(len=*), intent(in) :: s
    call in_row(n)
    sink = sink + int(x(1))
    if (s == 'zz') sink = 0
  end subroutine
  subroutine outer(k)
    integer, intent(in) :: k
    real(8) :: v(4)
    v = k
    call copy(77)
    call computed(k*2.0d0)
    call row(v, 4, 'hello')
    sink = sink + k
  end subroutine
end module
program main
  use by_reference
  implicit none
  integer :: q
  q = command_argument_count() + 5
  call outer(q)
  print *, sink
end program
