// RUN: not tilefw opt %s | filecheck %s

func.func @f(%x: f32, %n: i32) {
  // CHECK: error[TFW0401]
  // CHECK: malformed.mlir:6
  %0 = tile.addf %x, %n : f32
  func.return
}
