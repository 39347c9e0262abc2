! Arrays, texts and numbers of every kind that Fortran has; stops in stop_here, called with each kind of parameter.
module kept
  implicit none
  integer :: shared(3) = [5, 6, 7]
  integer, parameter :: konst = 42
  enum, bind(c)
    enumerator :: ered = 1, egreen = 7
  end enum
  type point
    real(8) :: x, y
    character(len=4) :: tag
    integer, allocatable :: marks(:)
  end type point
end module

program arrays
  use kept
  implicit none
  integer :: mat(2, 2), low(-1:1), cube(2, 3, 2), i
  integer, allocatable :: al(:), none(:)
  real(8), allocatable :: grid(:, :)
  integer, pointer :: ptr(:), nowhere(:)
  integer, target :: base(10)
  character(len=8) :: txt
  character(len=3) :: names(2)
  complex :: z
  complex(8) :: z8
  complex(16) :: z16
  logical :: yes
  real(16) :: q
  real(10) :: x87
  type(point) :: pts(2)
  mat = reshape([1, 2, 3, 4], [2, 2])
  low = [-1, 0, 1]
  cube = reshape([(i, i = 1, 12)], [2, 3, 2])
  allocate (al(3)); al = [7, 8, 9]
  allocate (grid(0:1, -1:1)); grid = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [2, 3])
  base = [(i*10, i = 1, 10)]
  ptr => base(2:10:3)
  nullify (nowhere)
  txt = 'fortran '
  names = ['abc', 'xyz']
  z = (1.5, -2.5)
  z8 = (3.0d0, 6.0d0)
  z16 = cmplx(1.0_16/4.0_16, 2.0_16, 16)
  yes = .true.
  q = 2.0_16/3.0_16
  x87 = 2.0_10/3.0_10
  pts(1)%x = 1d0; pts(1)%y = 2d0; pts(1)%tag = 'abcd'
  pts(2)%x = 3d0; pts(2)%y = 4d0; pts(2)%tag = 'wxyz'
  allocate (pts(2)%marks(4:6)); pts(2)%marks = [40, 50, 60]
  call shapes(grid, base(1:9:2), base(10:1:-3), al, 3, txt)
  print *, sum(mat), sum(al), q, x87, ptr, low, cube, z, z8, z16, yes, pts(1)%x, names
  print *, allocated(none), associated(nowhere), shared, pts(2)%marks
contains
  subroutine shapes(g, s, back, e, n, c)
    integer, intent(in) :: n
    real(8), intent(in) :: g(:, :)
    integer, intent(in) :: s(:), back(:)
    integer, intent(in) :: e(n)
    character(len=*), intent(in) :: c
    integer :: auto(0:n)
    auto = n
    call stop_here(auto(0))
    print *, sum(g), sum(s), sum(back), sum(e), c, sum(auto)
  end subroutine
  subroutine stop_here(x)
    integer :: x
    print *, x
  end subroutine
end program
