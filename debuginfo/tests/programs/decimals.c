// Decimal floating-point numbers as arguments and results.
_Decimal64 take (_Decimal64 a, _Decimal32 b, _Decimal128 c, double d) { return a + b + c + (_Decimal64) d; }

int main (void) { return take (1.5DD, 2.5DF, 3.5DL, 4.5) == 0; }
