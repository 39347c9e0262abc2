// Rust values of every kind, read in the function that calls stop_here.
#[derive(Debug)]
#[allow(dead_code)]
enum Shape {
    Circle(f64),
    Square { side: u32 },
    Nothing,
}

struct Point {
    x: i32,
    y: i32,
}

#[unsafe(no_mangle)]
#[inline(never)]
fn stop_here(value: *const u8) {
    std::hint::black_box(value);
}

static LIMIT: u32 = 17;

impl Point {
    #[inline(never)]
    fn work(&self, k: u64) -> u64 {
        let byte: u8 = 200;
        let small: i16 = -3;
        let big: i128 = -1 << 100;
        let word: usize = 5;
        let half = 0.5f32;
        let yes = true;
        let letter = 'x';
        let pair = (3u8, -4i64, "in");
        let array = [1u16, 2, 3, 4];
        let slice: &[u16] = &array[1..];
        let text = "hello";
        let some: Option<u32> = Some(9);
        let none: Option<u32> = None;
        let shape = Shape::Square { side: 6 };
        let circle = Shape::Circle(1.5);
        let number = &word;
        let boxed = Box::new(Point { x: 70, y: 71 });
        stop_here(&byte);
        let sum = u64::from(byte) + small as u64 + big as u64 + *number as u64 + half as u64;
        let sum = sum + u64::from(yes) + letter as u64 + u64::from(pair.0) + pair.2.len() as u64;
        let sum = sum + slice.len() as u64 + text.len() as u64 + u64::from(some.is_some());
        println!("{shape:?} {circle:?} {none:?}");
        sum + k + self.x as u64 + self.y as u64 + boxed.x as u64 + boxed.y as u64 + u64::from(LIMIT)
    }
}

fn main() {
    let point = Point { x: 10, y: -20 };
    println!("{}", point.work(1234));
}
