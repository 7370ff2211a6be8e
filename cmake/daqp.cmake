# DAQP, the solver of the quadratic programmes of control: C sources (MIT), compiled into the core. SARRUS_DAQP is a folder with these sources (include/
# and src/). If it is empty, pip downloads the release from an index or, without a network, takes it from the folder PIP_FIND_LINKS. No code of the
# archive is executed: pip checks its hash before unpacking it, and gets its metadata from fetch_only/ instead of the archive's setup.py.
set(SARRUS_DAQP "" CACHE PATH "Folder with DAQP's include/ and src/; empty: pip downloads the release")

if(SARRUS_DAQP)
  set(daqp ${SARRUS_DAQP})
else()
  set(daqp_version 0.11.0)
  set(daqp_hash 2f27baf18d2acca14186498e651b34e0bed455627e777d3fd8ba655e7e40f920)
  set(kept ${CMAKE_BINARY_DIR}/headers/daqp)  # a subfolder, because scikit-build-core clears the top of the build folder
  set(archive ${kept}/daqp-${daqp_version}.tar.gz)
  set(found "")
  if(EXISTS ${archive})
    file(SHA256 ${archive} found)
  endif()
  if(NOT found STREQUAL daqp_hash)
    find_package(Python REQUIRED COMPONENTS Interpreter)
    file(REMOVE ${archive})
    file(WRITE ${kept}/daqp.txt "daqp==${daqp_version} --hash=sha256:${daqp_hash}\n")
    set(path "${CMAKE_CURRENT_LIST_DIR}/fetch_only")
    if(DEFINED ENV{PYTHONPATH})
      cmake_path(CONVERT "${path};$ENV{PYTHONPATH}" TO_NATIVE_PATH_LIST path)
    endif()
    execute_process(COMMAND ${CMAKE_COMMAND} -E env "PYTHONPATH=${path}"
                            ${Python_EXECUTABLE} -m pip download --no-deps --no-build-isolation --use-pep517 --no-binary daqp --require-hashes
                            --dest ${kept} --requirement ${kept}/daqp.txt
                    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
      message(FATAL_ERROR "pip could not download DAQP ${daqp_version}; set SARRUS_DAQP to a folder with its include/ and src/.\n${said}")
    endif()
  endif()

  # restore the files of the archive, in case files in this folder were changed; unchanged files keep their time, so that they are not compiled again
  set(daqp ${kept}/daqp-${daqp_version}/csrc)
  set(fresh ${kept}/fresh/daqp-${daqp_version}/csrc)
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${kept}/fresh)
  file(GLOB_RECURSE released RELATIVE ${fresh} ${fresh}/*)
  file(GLOB_RECURSE others RELATIVE ${daqp} ${daqp}/*)
  list(REMOVE_ITEM others ${released})
  foreach(file ${others})
    file(REMOVE ${daqp}/${file})
  endforeach()
  foreach(file ${released})
    get_filename_component(folder ${daqp}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    file(COPY_FILE ${fresh}/${file} ${daqp}/${file} ONLY_IF_DIFFERENT)
    # a changed file causes a new configuration, which restores it
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${daqp}/${file})
  endforeach()
  file(REMOVE_RECURSE ${kept}/fresh)
endif()

file(GLOB daqp_sources ${daqp}/src/*.c)
if(NOT daqp_sources)
  message(FATAL_ERROR "${daqp} does not contain DAQP; expected a folder with include/ and src/")
endif()
add_library(daqp OBJECT ${daqp_sources})
target_include_directories(daqp SYSTEM PUBLIC ${daqp}/include)
target_compile_options(daqp PRIVATE -O3 -w)
set_target_properties(daqp PROPERTIES C_VISIBILITY_PRESET hidden)
