; The threads that run the parallel loops of compiled programs, in place of the pool of TVM's runtime.
;
; A loop is cut into one task for each thread. The launching thread runs task 0, and then every task that no worker has
; begun. So it never waits for a worker to be woken, or to be given a core: on a machine whose cores are busy with other
; work, a loop takes at most what one thread takes, unless a worker loses its core within a task. TVM's own pool waits
; for its workers in any case, and gives its core away while it waits.
;
; A worker waits for its next task by reading one word some thousand times, then sleeps until the next loop. If another
; thread of the process is running a loop, a loop runs on its launching thread alone: there is one pool in a process.
;
; The state is one page, which the kernel fills with zeros in a forked child, so that the child starts its own workers.
; For Linux and its C library; `loopwright.codegen.host.pool` puts in what differs between architectures.

target datalayout = "$layout"
target triple = "$triple"

; What TVM's `TVMBackendParallelLaunch` gives a task: a handle for barriers, which tuned code has none of, and the tasks.
%Env = type { ptr, i32 }

; One cache line each: what a loop is; what is left of it; who sleeps; who launches.
;   0 i64 tasks that no thread has begun, a bit each    8 ptr body   16 ptr data   24 Env   40 i32 loops so far
;  64 i32 tasks that workers have not finished         68 i32 whether the launcher sleeps  72 i32 a task that failed, or 0
; 128 i32 workers that sleep                          132 i32 the loop that woke them last
; 192 i32 whether a loop is running                   196 i32 threads, or 0 before the first loop
@state = internal global ptr null

@launch_name = internal constant [27 x i8] c"__TVMBackendParallelLaunch\00"
@tvm_threads = internal constant [16 x i8] c"TVM_NUM_THREADS\00"
@omp_threads = internal constant [16 x i8] c"OMP_NUM_THREADS\00"
@worker_name = internal constant [11 x i8] c"loopwright\00"

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @madvise(ptr, i64, i32)
declare ptr @getenv(ptr)
declare i32 @atoi(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @prctl(i32, ...)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i64 @syscall(i64, ...)
declare i32 @TVMFFIEnvModRegisterContextSymbol(ptr, ptr)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)

; Make the modules that are loaded from now on run their loops here. Callable as a function of a `tvm.runtime.Module`.
define i32 @__tvm_ffi_install(ptr %self, ptr %arguments, i32 %count, ptr %result) {
  %before = load ptr, ptr @state
  %installed = icmp ne ptr %before, null
  br i1 %installed, label %register, label %allocate
allocate:
  ; Readable and writable, private and anonymous.
  %page = call ptr @mmap(ptr null, i64 4096, i32 3, i32 34, i32 -1, i64 0)
  %failed = icmp eq ptr %page, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %done, label %share
share:
  call i32 @madvise(ptr %page, i64 4096, i32 18) ; wiped in a forked child
  store ptr %page, ptr @state
  br label %register
register:
  call i32 @TVMFFIEnvModRegisterContextSymbol(ptr @launch_name, ptr @loopwright_parallel_launch)
  br label %done
done:
  store i32 0, ptr %result ; None
  ret i32 0
}

; Run a loop, as `TVMBackendParallelLaunch`: in `wanted` tasks, or in one for each thread if that is 0.
define i32 @loopwright_parallel_launch(ptr %body, ptr %data, i32 %wanted) {
  %alone = alloca %Env
  %state = load ptr, ptr @state
  %busy = getelementptr i8, ptr %state, i64 192
  %was_busy = atomicrmw xchg ptr %busy, i32 1 acquire
  %is_busy = icmp ne i32 %was_busy, 0
  br i1 %is_busy, label %serial, label %free

serial:
  store %Env { ptr null, i32 1 }, ptr %alone
  %serial_result = call i32 %body(i32 0, ptr %alone, ptr %data)
  ret i32 %serial_result

free:
  %threads_at = getelementptr i8, ptr %state, i64 196
  %known = load i32, ptr %threads_at
  %started = icmp ne i32 %known, 0
  br i1 %started, label %begin, label %start
start:
  %now = call i32 @start_workers(ptr %state)
  store i32 %now, ptr %threads_at
  br label %begin
begin:
  %threads = phi i32 [ %known, %free ], [ %now, %start ]
  %any = icmp eq i32 %wanted, 0
  %fewer = call i32 @llvm.smin.i32(i32 %wanted, i32 %threads)
  %tasks = select i1 %any, i32 %threads, i32 %fewer
  %env = getelementptr i8, ptr %state, i64 24
  %env_tasks = getelementptr i8, ptr %state, i64 32
  store ptr null, ptr %env
  store i32 %tasks, ptr %env_tasks
  %several = icmp sgt i32 %tasks, 1
  br i1 %several, label %publish, label %own

publish:
  %body_at = getelementptr i8, ptr %state, i64 8
  %data_at = getelementptr i8, ptr %state, i64 16
  store ptr %body, ptr %body_at
  store ptr %data, ptr %data_at
  %pending = getelementptr i8, ptr %state, i64 64
  %others = sub i32 %tasks, 1
  store atomic i32 %others, ptr %pending monotonic, align 4
  ; The bits of tasks 1 to tasks - 1.
  %tasks_64 = zext i32 %tasks to i64
  %unused = sub i64 64, %tasks_64
  %ones = lshr i64 -1, %unused
  %bits = and i64 %ones, -2
  store atomic i64 %bits, ptr %state release, align 8
  %loops = getelementptr i8, ptr %state, i64 40
  %loop = atomicrmw add ptr %loops, i32 1 seq_cst
  %sleepers_at = getelementptr i8, ptr %state, i64 128
  %sleepers = load atomic i32, ptr %sleepers_at seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %wake, label %own
wake:
  ; Once in 64 loops until they run: on a busy machine that is many loops later, and a call of the kernel takes longer
  ; than a loop. Not only once: a worker that is about to sleep may miss it.
  %woken_at = getelementptr i8, ptr %state, i64 132
  %woken = load atomic i32, ptr %woken_at monotonic, align 4
  %since = sub i32 %loop, %woken
  %is_recent = icmp ult i32 %since, 64
  br i1 %is_recent, label %own, label %do_wake
do_wake:
  store atomic i32 %loop, ptr %woken_at seq_cst, align 4
  call void @wake(ptr %loops)
  br label %own

own:
  %own_result = call i32 %body(i32 0, ptr %env, ptr %data)
  br i1 %several, label %steal, label %finish

steal:
  %result = phi i32 [ %own_result, %own ], [ %result, %lost ], [ %worse, %stolen ]
  %left = load atomic i64, ptr %state monotonic, align 8
  %some_left = icmp ne i64 %left, 0
  br i1 %some_left, label %take, label %await
take:
  %rest = sub i64 %left, 1
  %first_cleared = and i64 %left, %rest ; without its lowest bit
  %lowest = xor i64 %left, %first_cleared
  %mask = xor i64 %lowest, -1
  %previous = atomicrmw and ptr %state, i64 %mask acquire
  %got = and i64 %previous, %lowest
  %is_mine = icmp ne i64 %got, 0
  br i1 %is_mine, label %stolen, label %lost
lost:
  br label %steal
stolen:
  %number_64 = call i64 @llvm.cttz.i64(i64 %lowest, i1 true)
  %number = trunc i64 %number_64 to i32
  %stolen_result = call i32 %body(i32 %number, ptr %env, ptr %data)
  %stolen_failed = icmp ne i32 %stolen_result, 0
  %worse = select i1 %stolen_failed, i32 %stolen_result, i32 %result
  %pending_s = getelementptr i8, ptr %state, i64 64
  atomicrmw sub ptr %pending_s, i32 1 acq_rel
  br label %steal

await:
  %tries = phi i32 [ 0, %steal ], [ %tried, %pause ], [ 0, %sleep ]
  %pending_a = getelementptr i8, ptr %state, i64 64
  %unfinished = load atomic i32, ptr %pending_a acquire, align 4
  %all_done = icmp eq i32 %unfinished, 0
  br i1 %all_done, label %errors, label %patience
patience:
  %tried = add i32 %tries, 1
  %enough = icmp sgt i32 %tried, 2000
  br i1 %enough, label %doze, label %pause
pause:
  call void asm sideeffect "$pause", ""()
  br label %await
doze:
  ; Its worker may need this core.
  %waiting_at = getelementptr i8, ptr %state, i64 68
  store atomic i32 1, ptr %waiting_at seq_cst, align 4
  %still = load atomic i32, ptr %pending_a seq_cst, align 4
  %is_still = icmp ne i32 %still, 0
  br i1 %is_still, label %wait_for_it, label %sleep
wait_for_it:
  call void @wait(ptr %pending_a, i32 %still)
  br label %sleep
sleep:
  store atomic i32 0, ptr %waiting_at monotonic, align 4
  br label %await

errors:
  ; A task that failed on a worker fails again here, where its error is looked for.
  %failed_at = getelementptr i8, ptr %state, i64 72
  %failed = load i32, ptr %failed_at
  %has_failed = icmp ne i32 %failed, 0
  br i1 %has_failed, label %repeat, label %finish
repeat:
  store i32 0, ptr %failed_at
  %failed_result = call i32 %body(i32 %failed, ptr %env, ptr %data)
  br label %finish

finish:
  %final = phi i32 [ %own_result, %own ], [ %result, %errors ], [ %failed_result, %repeat ]
  store atomic i32 0, ptr %busy release, align 4
  ret i32 %final
}

; Start the workers with all signals blocked, and return the number of threads, the launching one included.
define internal i32 @start_workers(ptr %state) {
  %thread = alloca i64
  %all = alloca [16 x i64]
  %old = alloca [16 x i64]
  %tvm = call ptr @getenv(ptr @tvm_threads)
  %no_tvm = icmp eq ptr %tvm, null
  br i1 %no_tvm, label %openmp, label %read
openmp:
  %omp = call ptr @getenv(ptr @omp_threads)
  %no_omp = icmp eq ptr %omp, null
  br i1 %no_omp, label %none, label %read
none:
  ret i32 1
read:
  %text = phi ptr [ %tvm, %0 ], [ %omp, %openmp ]
  %value = call i32 @atoi(ptr %text)
  %least = call i32 @llvm.smax.i32(i32 %value, i32 1)
  %threads = call i32 @llvm.smin.i32(i32 %least, i32 64)
  call i32 @sigfillset(ptr %all)
  call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %next
next:
  %number = phi i32 [ 1, %read ], [ %after, %made ]
  %more = icmp slt i32 %number, %threads
  br i1 %more, label %make, label %done
make:
  %number_64 = zext i32 %number to i64
  %argument = inttoptr i64 %number_64 to ptr
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %argument)
  %refused = icmp ne i32 %error, 0
  br i1 %refused, label %done, label %made
made:
  %handle = load ptr, ptr %thread
  call i32 @pthread_detach(ptr %handle)
  %after = add i32 %number, 1
  br label %next
done:
  call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  ret i32 %number
}

; Run the tasks of one number, for good.
define internal ptr @worker(ptr %argument) {
  call i32 (i32, ...) @prctl(i32 15, ptr @worker_name) ; what tools call the thread
  %state = load ptr, ptr @state
  %number_64 = ptrtoint ptr %argument to i64
  %number = trunc i64 %number_64 to i32
  %bit = shl i64 1, %number_64
  %mask = xor i64 %bit, -1
  %env = getelementptr i8, ptr %state, i64 24
  %body_at = getelementptr i8, ptr %state, i64 8
  %data_at = getelementptr i8, ptr %state, i64 16
  %loops_at = getelementptr i8, ptr %state, i64 40
  %pending = getelementptr i8, ptr %state, i64 64
  %waiting_at = getelementptr i8, ptr %state, i64 68
  %failed_at = getelementptr i8, ptr %state, i64 72
  %sleepers = getelementptr i8, ptr %state, i64 128
  %woken_at = getelementptr i8, ptr %state, i64 132
  br label %idle
idle:
  %loops = load atomic i32, ptr %loops_at seq_cst, align 4
  br label %look
look:
  %tries = phi i32 [ 0, %idle ], [ %tried, %pause ]
  %free = load atomic i64, ptr %state acquire, align 8
  %mine = and i64 %free, %bit
  %is_free = icmp ne i64 %mine, 0
  br i1 %is_free, label %take, label %patience
patience:
  %tried = add i32 %tries, 1
  %enough = icmp sgt i32 %tried, 2000
  br i1 %enough, label %doze, label %pause
pause:
  call void asm sideeffect "$pause", ""()
  br label %look
doze:
  %long_ago = sub i32 %loops, 64
  store atomic i32 %long_ago, ptr %woken_at seq_cst, align 4
  atomicrmw add ptr %sleepers, i32 1 seq_cst
  call void @wait(ptr %loops_at, i32 %loops) ; not if there was another loop
  atomicrmw sub ptr %sleepers, i32 1 seq_cst
  store atomic i32 %long_ago, ptr %woken_at seq_cst, align 4
  br label %idle
take:
  %previous = atomicrmw and ptr %state, i64 %mask acq_rel
  %got = and i64 %previous, %bit
  %is_mine = icmp ne i64 %got, 0
  br i1 %is_mine, label %run, label %idle
run:
  %body = load ptr, ptr %body_at
  %data = load ptr, ptr %data_at
  %result = call i32 %body(i32 %number, ptr %env, ptr %data)
  %is_error = icmp ne i32 %result, 0
  br i1 %is_error, label %error, label %finished
error:
  store atomic i32 %number, ptr %failed_at monotonic, align 4
  br label %finished
finished:
  %before = atomicrmw sub ptr %pending, i32 1 seq_cst
  %was_last = icmp eq i32 %before, 1
  br i1 %was_last, label %last, label %idle
last:
  %waiting = load atomic i32, ptr %waiting_at seq_cst, align 4
  %is_waiting = icmp ne i32 %waiting, 0
  br i1 %is_waiting, label %call, label %idle
call:
  call void @wake(ptr %pending)
  br label %idle
}

; Sleep until the word is woken, unless it is another value.
define internal void @wait(ptr %word, i32 %value) {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}

; Wake all threads that sleep on a word.
define internal void @wake(ptr %word) {
  call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  ret void
}

declare i64 @llvm.cttz.i64(i64, i1)
