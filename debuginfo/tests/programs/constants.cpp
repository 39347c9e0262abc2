// Numbers with the highest bit of a byte set. The compiler writes them without a sign.
enum Plain { LOW = 1, HIGH = 200, HIGHER = 40000 };
enum Small : unsigned char { FEW = 3, MANY = 0xc8 };
enum Signed : int { MINUS = -5, TOP = 0x80 };

__attribute__((noinline)) int stop(Plain p, Small s, Signed t) { return __builtin_expect(p + s + t, 0); }

int (*volatile call)(Plain, Small, Signed) = stop;

__attribute__((noinline)) int work(int n)
{
  const int constant = 200;
  const unsigned char byte = 0xfe;
  const int negative = -3;
  int found = call(HIGH, MANY, TOP);
  return found + n + constant + byte + negative;
}

int main() { return work(1) == 0; }
