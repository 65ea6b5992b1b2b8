// Adds 1 to 1280 numbers: four vectors, read from four slices of the east (a byte plane each), stored in the west.
.machine sdm-1
.entry "increment"
.grid 1, 1, 1
.expect_cycles 40
.parameter pointer "x" fp32 nbytes=5120
.tensor in "x" fp32 vectors=4 groups=1 segment=4
.plane MEM.E0 b0:0
.plane MEM.E1 b0:0
.plane MEM.E2 b0:0
.plane MEM.E3 b0:0
.transfer parameter=0 base=0 lanes=320 chunk=1 fill=0x0
.axis extent=1280 vector=0 lane=1 offsets=0+1*1280
.tensor out "y" fp32 vectors=4 groups=1 segment=4
.plane MEM.W0 b0:0
.plane MEM.W1 b0:0
.plane MEM.W2 b0:0
.plane MEM.W3 b0:0
.transfer parameter=0 base=0 lanes=320 chunk=1 fill=0x0
.axis extent=1280 vector=0 lane=1 offsets=0+1*1280
.chip 0
.queue MEM.E0
  @3 RD b0:0, n=4 -> sW0
.queue MEM.E1
  @2 RD b0:0, n=4 -> sW1
.queue MEM.E2
  @1 RD b0:0, n=4 -> sW2
.queue MEM.E3
  @0 RD b0:0, n=4 -> sW3
.queue VXM.0
  @9 ADD.fp32 sW0, #1.0, n=4 -> sW4
.queue MEM.W0
  @12 WR b0:0, sW4, n=4
.queue MEM.W1
  @13 WR b0:0, sW5, n=4
.queue MEM.W2
  @14 WR b0:0, sW6, n=4
.queue MEM.W3
  @15 WR b0:0, sW7, n=4
