func.func @vector_add(%x_ptr: !tile.ptr<f32> {tile.name = "x_ptr", tile.divisible = 16 : i64},
                      %y_ptr: !tile.ptr<f32> {tile.name = "y_ptr", tile.divisible = 16 : i64},
                      %out_ptr: !tile.ptr<f32> {tile.name = "out_ptr", tile.divisible = 16 : i64},
                      %n: i32 {tile.name = "n", tile.divisible = 16 : i64}) {
  %pid = tile.program_id 0
  %block = tile.constant 1024 : i32
  %one = tile.constant 1 : i32
  %offset = tile.muli %pid, %block : i32
  %x = tile.load_block %x_ptr at (%offset : i32) strides (%one : i32) shape (%n : i32) checks [upper] : !tile.ptr<f32>, tensor<1024xf32>
  %y = tile.load_block %y_ptr at (%offset : i32) strides (%one : i32) shape (%n : i32) checks [upper] : !tile.ptr<f32>, tensor<1024xf32>
  %sum = tile.addf %x, %y : tensor<1024xf32>
  tile.store_block %out_ptr, %sum at (%offset : i32) strides (%one : i32) shape (%n : i32) checks [upper] : !tile.ptr<f32>, tensor<1024xf32>
  func.return
}
