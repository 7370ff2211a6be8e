# DAQP, which solves the quadratic programmes of control: C sources (MIT), compiled into the core. SARRUS_DAQP names a folder that has them (its
# include/ and src/); without it pip fetches the release, as it fetches everything else: from an index, or without a network from the folder
# that PIP_FIND_LINKS names.
set(SARRUS_DAQP "" CACHE PATH "Folder with DAQP's include/ and src/; empty: pip downloads the release")
set(daqp_version 0.11.0)
set(daqp_hash 2f27baf18d2acca14186498e651b34e0bed455627e777d3fd8ba655e7e40f920)

if(NOT SARRUS_DAQP)
  set(kept ${CMAKE_BINARY_DIR}/headers/daqp)  # below what scikit-build-core clears
  set(archive ${kept}/daqp-${daqp_version}.tar.gz)
  if(NOT EXISTS ${archive})
    find_package(Python REQUIRED COMPONENTS Interpreter)
    # pip asks for its metadata, which takes setuptools and Cython: where they are not there, in an environment of its own
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import Cython, setuptools, wheel" RESULT_VARIABLE lacking OUTPUT_QUIET ERROR_QUIET)
    set(isolation "")
    if(NOT lacking)
      set(isolation --no-build-isolation)
    endif()
    execute_process(COMMAND ${Python_EXECUTABLE} -m pip download --no-deps ${isolation} --no-binary daqp --dest ${kept} daqp==${daqp_version}
                    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
      message(FATAL_ERROR "DAQP ${daqp_version} could not be had by pip; set SARRUS_DAQP to a folder with its include/ and src/.\n${said}")
    endif()
  endif()
  file(SHA256 ${archive} found)
  if(NOT found STREQUAL daqp_hash)
    file(REMOVE ${archive})
    message(FATAL_ERROR "daqp-${daqp_version}.tar.gz is not what was released: its SHA-256 is ${found}")
  endif()
  if(NOT EXISTS ${kept}/daqp-${daqp_version})
    file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${kept})
  endif()
  set(SARRUS_DAQP ${kept}/daqp-${daqp_version}/csrc)
endif()

file(GLOB daqp_sources ${SARRUS_DAQP}/src/*.c)
if(NOT daqp_sources)
  message(FATAL_ERROR "There is no DAQP in ${SARRUS_DAQP}: it should have include/ and src/")
endif()
add_library(daqp OBJECT ${daqp_sources})
target_include_directories(daqp SYSTEM PUBLIC ${SARRUS_DAQP}/include)
target_compile_options(daqp PRIVATE -O3 -w)
set_target_properties(daqp PROPERTIES C_VISIBILITY_PRESET hidden)
if(SARRUS_PYTHON)  # its licence goes where its code goes
  find_file(daqp_license LICENSE PATHS ${SARRUS_DAQP} ${SARRUS_DAQP}/.. NO_DEFAULT_PATH)
  if(daqp_license)
    install(FILES ${daqp_license} DESTINATION sarrus/licenses RENAME DAQP.txt)
  endif()
endif()
